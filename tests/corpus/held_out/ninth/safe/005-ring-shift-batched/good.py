import torch
import torch.distributed as dist


class Ring:
    def __init__(self):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.to = (self.rank + 1) % self.world
        self.source = (self.rank - 1) % self.world

    def shift(self, block):
        incoming = torch.empty_like(block)
        ops = [
            dist.P2POp(dist.isend, block, self.to),
            dist.P2POp(dist.irecv, incoming, self.source),
        ]
        if self.rank % 2:
            ops.reverse()
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        return incoming


def main():
    dist.init_process_group("gloo")
    ring = Ring()
    block, total = torch.tensor([float(ring.rank)]), torch.zeros(1)
    for _ in range(ring.world):
        total += block
        block = ring.shift(block)
    assert total.item() == ring.world * (ring.world - 1) / 2
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
