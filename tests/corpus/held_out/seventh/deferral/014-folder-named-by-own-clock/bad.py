"""Distributed checkpoints in folders named by the time of the save."""
from datetime import datetime, timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import spmdguard as sg


class Archive:
    def __init__(self, root: str):
        self.root = Path(root)
        self.saved: list[str] = []

    def fresh_name(self) -> str:
        return datetime.now().strftime("%Y%m%dT%H%M%S")

    @sg.collective(name="archive")
    def save(self, state: dict) -> None:
        name = self.fresh_name()
        dcp.save(state, checkpoint_id=str(self.root / name))
        self.saved.append(name)

    @sg.rank_local(only="main")
    def write_index(self) -> None:
        (self.root / "index.txt").write_text("\n".join(self.saved))


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(minutes=2))
    archive = Archive("archive")
    weights = {"w": torch.zeros(8), "step": torch.zeros(1)}
    for step in range(30):
        grad = weights["w"] - 1.0
        dist.all_reduce(grad)
        weights["w"] -= 0.1 * grad / dist.get_world_size()
        weights["step"].fill_(step)
        if step % 10 == 9:
            archive.save(weights)
            archive.write_index()
        if sg.sync_should_stop(sg.has_deferred_error()):
            break
    dist.barrier()
    dist.destroy_process_group()
    sg.raise_if_deferred_error()


if __name__ == "__main__":
    main()
