from datetime import timedelta

import torch
import torch.distributed as dist


def announce(t):
    dist.broadcast(t, src=0)


def take_note(t):
    t.add_(1)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    act = announce if dist.get_rank() == 0 else take_note
    t = torch.zeros(4)
    act(t)
    print(t)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
