from datetime import timedelta

import torch
import torch.distributed as dist


def cleanup():
    print("cleanup", dist.get_rank())
    dist.destroy_process_group()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    seen = torch.tensor([10])
    cleanup()
    dist.all_reduce(seen)
    print(seen.item())


if __name__ == "__main__":
    main()
