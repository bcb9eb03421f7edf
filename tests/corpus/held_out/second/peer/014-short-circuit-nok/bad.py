from datetime import timedelta

import torch.distributed as dist


def ready():
    dist.barrier()
    return True


def checked(rank):
    leader = rank == 0
    return leader or ready()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    state = checked(dist.get_rank())
    print("state", state)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
