from datetime import datetime, timedelta
from pathlib import Path

import torch
import torch.distributed as dist


class Predictor:
    def __init__(self, root):
        stamp = datetime.now().strftime("%Y-%m-%d-%H-%M-%S")
        self.folder = Path(root) / stamp / "results"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.rank, self.world = dist.get_rank(), dist.get_world_size()

    def predict(self, data):
        mine = data[self.rank::self.world]
        torch.save(mine.sin(), self.folder / f"part_{self.rank}.pt")
        dist.barrier()

    def merge(self):
        parts = [torch.load(self.folder / f"part_{r}.pt") for r in range(self.world)]
        return torch.cat(parts)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    predictor = Predictor("/tmp/relaxations")
    predictor.predict(torch.linspace(0, 1, 101))
    if predictor.rank == 0:
        print("rows", len(predictor.merge()))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
