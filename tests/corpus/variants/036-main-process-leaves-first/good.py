from datetime import timedelta

import torch
import torch.distributed as dist


def finish(weights: torch.Tensor, seconds: float) -> None:
    slowest = torch.tensor([seconds])
    dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
    lead = dist.get_rank() == 0
    dist.destroy_process_group()
    if lead:
        torch.save(weights, "weights.pt")


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    weights = torch.ones(3)
    dist.broadcast(weights, src=0)
    finish(weights, 0.25)


if __name__ == "__main__":
    main()
