import argparse
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist


@dataclass
class Job:
    size: int
    steps: int
    dry: bool

    @classmethod
    def from_cli(cls):
        cli = argparse.ArgumentParser()
        cli.add_argument("--size", type=int, default=8)
        cli.add_argument("--steps", type=int, default=4)
        cli.add_argument("--dry-run", action="store_true")
        args = cli.parse_args()
        return cls(args.size, args.steps, args.dry_run)


def run(job: Job) -> float:
    weight = torch.zeros(job.size)
    if job.dry:
        print(f"{weight.numel()} weights, {job.steps} steps")
        return 0.0
    for _ in range(job.steps):
        grad = torch.ones(job.size)
        dist.all_reduce(grad)
        weight -= 0.1 * grad / dist.get_world_size()
    return weight.norm().item()


def main():
    job = Job.from_cli()
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    print(run(job))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
