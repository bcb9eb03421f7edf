import datetime as dt
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist


@dataclass
class PipelineConfig:
    job: str = "policy"
    steps: int = 20
    save_every: int = 10
    output_dir: Path | None = field(default=None)

    def validate(self):
        if self.output_dir is None:
            box = [dt.datetime.now()]
            dist.broadcast_object_list(box, src=0)
            now = box[0]
            self.output_dir = Path("outputs") / f"{now:%Y-%m-%d}" / f"{now:%H-%M-%S}_{self.job}"


def write_shard(cfg, step, shard):
    rank = dist.get_rank()
    folder = cfg.output_dir / f"step_{step:06d}"
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(shard, folder / f"optim_rank_{rank}.pt")
    dist.barrier()


def train(cfg):
    world, rank = dist.get_world_size(), dist.get_rank()
    shard = {"exp_avg": torch.zeros(1000 // world), "rank": rank}
    for step in range(1, cfg.steps + 1):
        grad = torch.randn(1000)
        dist.all_reduce(grad)
        piece = grad.chunk(world)[rank]
        shard["exp_avg"].mul_(0.9).add_(piece, alpha=0.1)
        if step % cfg.save_every == 0:
            write_shard(cfg, step, shard)


def main():
    dist.init_process_group("gloo", timeout=timedelta(minutes=1))
    cfg = PipelineConfig()
    cfg.validate()
    train(cfg)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
