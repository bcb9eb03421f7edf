from datetime import timedelta

import torch
import torch.distributed as dist


class Sink:
    def flush(self, part):
        parts = [torch.zeros_like(part) for _ in range(dist.get_world_size())]
        dist.gather(part, parts, dst=0)
        return torch.stack(parts).sum().item()


class NullSink(Sink):
    def flush(self, part):
        return None


def make_sink(rank):
    return Sink() if rank == 0 else NullSink()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    sink = make_sink(dist.get_rank())
    print(sink.flush(torch.ones(5)))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
