from functools import reduce

import torch.distributed as dist


class Bus:
    def __init__(self):
        self.listeners = []

    def listen(self, fn):
        self.listeners.append(fn)

    def broadcast(self, message):
        for fn in self.listeners:
            fn(message)

    def gather(self, question):
        return [fn(question) for fn in self.listeners]


def main():
    dist.init_process_group("gloo")
    counts = [None] * dist.get_world_size()
    dist.all_gather_object(counts, {"seen": 3, "lost": dist.get_rank()})
    bus = Bus()
    bus.listen(str.upper)
    if dist.get_rank() == 0:
        total = reduce(lambda a, b: {k: a[k] + b[k] for k in a}, counts)
        bus.broadcast(f"seen {total['seen']}")
        assert bus.gather("ok") == ["OK"]
        print(total)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
