import sys

import torch
import torch.distributed as dist


class Console:
    def __init__(self, stream):
        self.rank = dist.get_rank()
        self.stream = stream

    def __iter__(self):
        return self

    def __next__(self):
        box = [None]
        if self.rank == 0:
            line = self.stream.readline()
            box[0] = line.split() if line else ["quit"]
        dist.broadcast_object_list(box, src=0)
        if box[0][:1] == ["quit"]:
            raise StopIteration
        return box[0]


def spread(t):
    low, high = t.clone(), t.clone()
    dist.all_reduce(low, op=dist.ReduceOp.MIN)
    dist.all_reduce(high, op=dist.ReduceOp.MAX)
    return (high - low).item()


def main():
    dist.init_process_group("gloo")
    state = torch.rand(1)
    for words in Console(sys.stdin):
        match words:
            case ["mean"]:
                dist.all_reduce(state)
                state /= dist.get_world_size()
            case ["reset", value]:
                state.fill_(float(value))
            case ["from", root] if root.isdigit():
                dist.broadcast(state, src=int(root) % dist.get_world_size())
            case ["spread"]:
                width = spread(state)
                if dist.get_rank() == 0:
                    print(f"spread {width:.5f}")
            case _:
                if dist.get_rank() == 0:
                    print("what?", *words)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
