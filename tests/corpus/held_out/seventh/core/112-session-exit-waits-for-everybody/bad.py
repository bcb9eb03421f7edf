from datetime import timedelta

import torch
import torch.distributed as dist


class Session:
    """Process group for the length of a with block."""

    def __init__(self, backend="gloo", seconds=600):
        self.backend, self.limit = backend, timedelta(seconds=seconds)

    def __enter__(self):
        dist.init_process_group(self.backend, timeout=self.limit)
        return dist.get_rank()

    def __exit__(self, exc_type, exc, tb):
        dist.barrier()
        dist.destroy_process_group()
        return False


def forecast(field, step, rank):
    if rank == 1 and step == 4:
        raise FloatingPointError("negative pressure in tile 9")
    return field + 0.1 * torch.randn_like(field)


def main():
    with Session() as rank:
        field = torch.ones(4, 4)
        for step in range(10):
            field = forecast(field, step, rank)
            mean = field.mean()
            dist.all_reduce(mean)
            if rank == 0:
                print(step, mean.item() / dist.get_world_size())


if __name__ == "__main__":
    main()
