"""Token ring: after size - 1 rounds every rank has seen every token."""
import torch
import torch.distributed as dist


class Ring:
    def __init__(self):
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.left = (self.rank - 1) % self.size
        self.right = (self.rank + 1) % self.size

    def shift(self, token):
        incoming = torch.empty_like(token)
        pending = dist.isend(token, self.right, tag=self.rank)
        dist.recv(incoming, self.left, tag=self.left)
        pending.wait()
        return incoming


def tokens(ring):
    token = torch.tensor([float(ring.rank)])
    for _ in range(ring.size - 1):
        token = ring.shift(token)
        yield token.item()


def main():
    dist.init_process_group("gloo")
    ring = Ring()
    print(ring.rank, sorted(tokens(ring)))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
