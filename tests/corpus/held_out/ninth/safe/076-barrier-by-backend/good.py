import os

import torch
import torch.distributed as dist


def device():
    if torch.cuda.is_available() and dist.get_backend() == "nccl":
        return torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    return torch.device("cpu")


def wait_for_everyone():
    if dist.get_backend() == "nccl":
        dist.barrier(device_ids=[device().index])
    else:
        dist.barrier()


def main():
    dist.init_process_group("gloo")
    weight = torch.zeros(4, device=device())
    for _ in range(2):
        grad = torch.ones_like(weight)
        dist.all_reduce(grad)
        weight -= grad
        wait_for_everyone()
    if dist.get_rank() == 0:
        print(weight.tolist())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
