import torch
import torch.distributed as dist


def rotate(block):
    rank, size = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % size, (rank - 1) % size
    incoming = torch.empty_like(block)
    out = dist.isend(block, dst=right)
    dist.recv(incoming, src=left)
    out.wait()
    return incoming


def main():
    dist.init_process_group("gloo")
    block = torch.full((1 << 20,), float(dist.get_rank()))
    for _ in range(dist.get_world_size()):
        block = rotate(block)
    print(dist.get_rank(), block[0].item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
