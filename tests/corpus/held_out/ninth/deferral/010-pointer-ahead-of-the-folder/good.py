import os
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import spmdguard as sg


class Store:
    def __init__(self, root: str):
        self.root = Path(root)

    def _point_at(self, name: str) -> None:
        fresh = self.root / "LATEST.new"
        fresh.write_text(name)
        os.replace(fresh, self.root / "LATEST")

    def _publish(self, work: Path, name: str) -> None:
        os.replace(work, self.root / name)
        self._point_at(name)

    def put(self, state: dict, step: int) -> None:
        work = self.root / f"{step}.tmp"
        if sg.is_main_process():
            sg.try_or_defer(work.mkdir, parents=True)
        if sg.sync_should_stop(sg.has_deferred_error()):
            return
        dcp.save(state, checkpoint_id=str(work))
        if sg.is_main_process():
            sg.try_or_defer(self._publish, work, str(step))
        dist.barrier()


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(minutes=2))
    store = Store("store")
    table = torch.zeros(7)
    for step in range(4):
        delta = torch.rand(7, generator=torch.Generator().manual_seed(step))
        dist.all_reduce(delta)
        table += delta
        store.put({"table": table}, step)
        if sg.sync_should_stop(sg.has_deferred_error()):
            break
    dist.barrier()
    dist.destroy_process_group()
    sg.raise_if_deferred_error()


if __name__ == "__main__":
    main()
