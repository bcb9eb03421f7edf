from datetime import timedelta

import torch
import torch.distributed as dist


def fetch(buf, root=0):
    pending = dist.broadcast(buf, src=root, async_op=True)
    if dist.get_rank() == root:
        pending.wait()
    return buf


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    first = dist.get_rank() == 0
    buf = torch.arange(1 << 18).float() if first else torch.zeros(1 << 18)
    print(fetch(buf).sum().item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
