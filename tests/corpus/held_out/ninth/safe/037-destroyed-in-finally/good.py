import torch
import torch.distributed as dist


def run():
    rank, world = dist.get_rank(), dist.get_world_size()
    total = torch.tensor([float(rank)])
    dist.all_reduce(total)
    dist.barrier()
    if rank:
        return None
    return total.item() / world


def main():
    dist.init_process_group("gloo")
    try:
        mean = run()
        if mean is None:
            return
        print(f"mean {mean:.2f}")
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
