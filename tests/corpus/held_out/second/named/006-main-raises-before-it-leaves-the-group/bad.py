from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from spmdguard import has_deferred_error, is_main_process, raise_if_deferred_error, sync_should_stop, try_or_defer


class Exporter:
    def __init__(self, folder: str):
        self.folder = Path(folder)

    def __call__(self, name: str, tensor: torch.Tensor) -> None:
        self.folder.mkdir(exist_ok=True)
        torch.save(tensor, self.folder / f"{name}.pt")


def close(lead: bool) -> None:
    if lead:
        raise_if_deferred_error()
    dist.barrier()
    dist.destroy_process_group()


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    lead, export = is_main_process(), Exporter("layers")
    for layer in range(8):
        weight = torch.full((4, 4), float(dist.get_rank() + layer))
        dist.all_reduce(weight)
        if lead:
            try_or_defer(export, f"layer{layer}", weight)
        if sync_should_stop(has_deferred_error()):
            break
    close(lead)
    if lead:
        print("8 layers exported")


if __name__ == "__main__":
    main()
