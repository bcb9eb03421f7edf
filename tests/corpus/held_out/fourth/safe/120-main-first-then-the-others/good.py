import os
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from spmdguard import is_main_process, main_process_first, run, sync_should_stop


def cached_table(path: Path) -> torch.Tensor:
    if not path.exists():
        part = path.with_suffix(f".{os.getpid()}")
        torch.save(torch.arange(12.0), part)
        os.replace(part, path)
    return torch.load(path)


@run()
def main() -> None:
    dist.init_process_group("gloo")
    path = Path(tempfile.gettempdir()) / f"table-{os.environ['MASTER_PORT']}.pt"
    with main_process_first():
        table = cached_table(path)
    for _ in range(3):
        total = table.clone()
        dist.all_reduce(total)
        table = total / dist.get_world_size()
        if sync_should_stop():
            break
    if is_main_process():
        print(table.sum().item())


if __name__ == "__main__":
    main()
