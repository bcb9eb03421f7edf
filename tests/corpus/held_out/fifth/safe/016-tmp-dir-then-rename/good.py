import os
import shutil
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Callable

import torch
import torch.distributed as dist


def fs_local_rank() -> int:
    if os.environ.get("SHARED_FS") == "1":
        return dist.get_rank()
    return int(os.environ["LOCAL_RANK"])


def is_url(path) -> bool:
    return "://" in str(path)


def wait_for(cond: Callable[[], bool], what: str, timeout: float = 60.0) -> None:
    start = time.monotonic()
    while not cond():
        if time.monotonic() - start > timeout:
            raise TimeoutError(f"waiting for {what}")
        time.sleep(0.2)


class Checkpointer:
    def __init__(self, work_dir: str):
        self.work_dir = Path(work_dir)

    @contextmanager
    def _staging(self, target: str):
        if is_url(target):
            tmp = self.work_dir / f"upload-{dist.get_rank()}"
            tmp.mkdir(parents=True, exist_ok=True)
            yield tmp  # the node's sync daemon ships this folder to the bucket
            return
        tmp = Path(target).with_name(Path(target).name + "-tmp")
        if fs_local_rank() == 0:
            shutil.rmtree(tmp, ignore_errors=True)
            tmp.mkdir(parents=True)
        dist.barrier()
        wait_for(tmp.exists, f"{tmp} to appear")
        yield tmp
        dist.barrier()
        if fs_local_rank() == 0:
            shutil.rmtree(target, ignore_errors=True)
            tmp.replace(target)
        wait_for(Path(target).exists, f"{target} to appear")
        dist.barrier()

    def save(self, target: str, model: torch.nn.Module, step: int) -> None:
        with self._staging(target) as tmp:
            torch.save({"model": model.state_dict(), "step": step}, tmp / f"rank{dist.get_rank()}.pt")


def main():
    dist.init_process_group("gloo")
    folder = os.environ.get("SAVE_FOLDER", "/ckpt/run")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(10, 10))
    ck = Checkpointer("/tmp/work")
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(1, 301):
        model(torch.randn(4, 10)).sum().backward()
        opt.step()
        opt.zero_grad()
        if step % 100 == 0:
            ck.save(f"{folder}/step{step}", model.module, step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
