"""The root knows the array, the others learn its shape first."""
import torch
import torch.distributed as dist

ROOT = 0


def make_side(rank):
    def give(array):
        dist.broadcast(torch.tensor(array.shape), ROOT)
        dist.broadcast(array, ROOT)
        return array

    def take(_):
        shape = torch.empty(2, dtype=torch.int64)
        dist.broadcast(shape, ROOT)
        array = torch.empty(*shape.tolist())
        dist.broadcast(array, ROOT)
        return array

    return give if rank == ROOT else take


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    side = make_side(rank)
    array = side(torch.rand(7, 3) if rank == ROOT else None)
    print(rank, tuple(array.shape), array.sum().item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
