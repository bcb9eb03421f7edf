import torch
import torch.distributed as dist


class Link:
    def __init__(self, stage, stages, shape):
        self.stage, self.last, self.shape = stage, stages - 1, shape
        self.flying = []

    def take(self, peer):
        buf = torch.empty(self.shape)
        dist.recv(buf, src=peer)
        return buf

    def give(self, t, peer):
        self.flying.append((dist.isend(t, dst=peer), t))

    def forward(self):
        x = torch.ones(self.shape) if self.stage == 0 else self.take(self.stage - 1)
        y = x * 2
        if self.stage < self.last:
            self.give(y, self.stage + 1)
        return y

    def backward(self, y):
        g = torch.ones_like(y) if self.stage == self.last else self.take(self.stage + 1)
        if self.stage > 0:
            self.give(g * 2, self.stage - 1)

    def drain(self):
        for work, _ in self.flying:
            work.wait()
        self.flying.clear()


def run(link, micro):
    warm = min(link.last - link.stage, micro)
    kept = [link.forward() for _ in range(warm)]
    for _ in range(micro - warm):
        kept.append(link.forward())
        link.backward(kept.pop(0))
    while kept:
        link.backward(kept.pop(0))
    link.drain()


def main():
    dist.init_process_group("gloo")
    link = Link(dist.get_rank(), dist.get_world_size(), (2, 3))
    for _ in range(2):
        run(link, micro=6)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
