import torch
import torch.distributed as dist


def token_ring(value):
    """Pass a running sum once around; every rank ends with the full total."""
    rank, world = dist.get_rank(), dist.get_world_size()
    if world == 1:
        return value
    right, left = (rank + 1) % world, (rank - 1) % world
    token = torch.zeros_like(value)
    if rank == 0:
        dist.send(value, dst=right)
        dist.recv(token, src=left)
    else:
        dist.recv(token, src=left)
        token += value
        dist.send(token, dst=right)
    total = token.clone()
    dist.broadcast(total, src=0)
    return total


class Meter:
    def __init__(self):
        self.local = torch.zeros(1)

    def add(self, x):
        self.local += x.detach().mean()

    def total(self):
        return token_ring(self.local).item()


def main():
    dist.init_process_group("gloo")
    meter = Meter()
    for _ in range(10):
        meter.add(torch.rand(16))
    total = meter.total()
    print(dist.get_rank(), f"{total:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
