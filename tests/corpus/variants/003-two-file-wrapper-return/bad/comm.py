"""The job's few words about other processes."""
import torch.distributed as dist


def is_lead() -> bool:
    return not dist.is_initialized() or dist.get_rank() == 0


def line_up(reason: str) -> None:
    if dist.is_initialized():
        print(f"waiting for all: {reason}")
        dist.barrier()
