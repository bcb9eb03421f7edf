"""Sum at rank 0 along a binomial tree, for any number of ranks, then to everyone."""
import torch
import torch.distributed as dist


def fold(value, rank, size, mask=1):
    if mask >= size:
        return
    if rank & mask:
        dist.send(value, dst=rank - mask)
        return
    if (partner := rank + mask) < size:
        other = torch.empty_like(value)
        dist.recv(other, src=partner)
        value += other
    fold(value, rank, size, mask << 1)


def tree_sum(value):
    fold(value, dist.get_rank(), dist.get_world_size())
    dist.broadcast(value, src=0)
    return value


def main():
    dist.init_process_group("gloo")
    size = dist.get_world_size()
    total = tree_sum(torch.tensor([dist.get_rank() + 1.0]))
    assert total.item() == size * (size + 1) / 2
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
