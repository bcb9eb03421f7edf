from datetime import timedelta

import torch
import torch.distributed as dist


class Member:
    def exchange(self, t):
        dist.broadcast(t, src=0)
        dist.all_reduce(t)
        return t


class Captain(Member):
    def exchange(self, t):
        t.fill_(2.0)
        out = super().exchange(t)
        print("captain has", out.tolist())
        return out


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    kind = Captain if dist.get_rank() == 0 else Member
    got = kind().exchange(torch.zeros(2))
    assert got[0].item() == 2 * dist.get_world_size()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
