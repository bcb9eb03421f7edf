import os
import time
from pathlib import Path

import torch
import torch.distributed as dist


def decide(flag: bool, all_ranks: bool = True) -> bool:
    t = torch.tensor(int(flag))
    dist.all_reduce(t)
    return bool(t.item() == dist.get_world_size()) if all_ranks else bool(t.item())


def is_shared(folder: str, timeout: float = 3.0) -> bool:
    """Does every rank see the same directory?"""
    if dist.get_world_size() == 1:
        return True
    path = Path(folder).resolve()
    first = [str(path)]
    dist.broadcast_object_list(first, src=0)
    if not decide(first[0] == str(path)):
        return False
    if not decide(path.is_dir()):
        raise FileNotFoundError(f"{path} does not exist on every rank")

    probe = path / ".shared-fs-probe"
    probe.unlink(missing_ok=True)
    dist.barrier()
    if dist.get_rank() == 0:
        probe.touch()
        found = True
    else:
        found, start = False, time.perf_counter()
        while not found and time.perf_counter() - start < timeout:
            found = probe.exists()
            time.sleep(0.05)
    dist.barrier()
    shared = decide(found)
    probe.unlink(missing_ok=True)
    return shared


def save(model, folder: str, shared: bool) -> None:
    writer = dist.get_rank() == 0 if shared else int(os.environ["LOCAL_RANK"]) == 0
    if writer:
        torch.save(model.state_dict(), Path(folder) / "model.pt")
    dist.barrier()


def main():
    dist.init_process_group("gloo")
    folder = os.environ.get("CKPT_DIR", "/tmp")
    shared = is_shared(folder)
    if dist.get_rank() == 0:
        print("shared filesystem:", shared)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(20, 20))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(1, 101):
        model(torch.randn(4, 20)).square().mean().backward()
        opt.step()
        opt.zero_grad()
        if step % 50 == 0:
            save(model.module, folder, shared)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
