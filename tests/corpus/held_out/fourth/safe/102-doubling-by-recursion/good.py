import torch
import torch.distributed as dist


def combine(value, distance):
    """Recursive doubling: after log2(size) levels every rank holds the sum."""
    if distance >= dist.get_world_size():
        return value
    partner = dist.get_rank() ^ distance
    other = torch.empty_like(value)
    out = dist.isend(value, dst=partner)
    dist.recv(other, src=partner)
    out.wait()
    return combine(value + other, 2 * distance)


def main():
    dist.init_process_group("gloo")
    size = dist.get_world_size()
    if size & (size - 1):
        raise SystemExit("needs a power of two")
    total = combine(torch.tensor([dist.get_rank() + 1.0]), 1)
    assert total.item() == size * (size + 1) / 2
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
