"""Relax a field that is spread over the processes; process zero decides which states are worth keeping."""
from datetime import timedelta

import torch
import torch.distributed as dist
from spmdguard import has_deferred_error, raise_if_deferred_error, rank_local, sync_should_stop


class Journal:
    def __init__(self, path: str, factor: float = 0.7):
        self.path = path
        self.factor = factor
        self.best = float("inf")

    @rank_local(only="main", default=False)
    def improved(self, energy: float) -> bool:
        with open(self.path, "a") as f:
            f.write(f"{energy:.6f}\n")
        if energy < self.factor * self.best:
            self.best = energy
            return True
        return False


def collect(field: torch.Tensor) -> torch.Tensor:
    parts = [torch.empty_like(field) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, field)
    return torch.cat(parts)


def relax(steps: int) -> torch.Tensor | None:
    field = torch.rand(6, generator=torch.Generator().manual_seed(dist.get_rank()))
    journal = Journal("energy.txt")
    kept = None
    for _ in range(steps):
        field = 0.8 * field
        energy = field.pow(2).sum().reshape(1)
        dist.all_reduce(energy)
        verdict = [journal.improved(energy.item())]
        dist.broadcast_object_list(verdict, src=0)
        if verdict[0]:
            kept = collect(field)
        if sync_should_stop(has_deferred_error()):
            break
    return kept


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    kept = relax(steps=8)
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()
    print("kept nothing" if kept is None else f"kept {kept.norm().item():.4f}")


if __name__ == "__main__":
    main()
