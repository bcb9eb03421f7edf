from datetime import timedelta

import torch
import torch.distributed as dist


def main():
    limit = timedelta(seconds=5)
    dist.init_process_group("gloo", timeout=limit)
    n = dist.get_world_size()
    turned = dist.new_group(list(range(n - 1, -1, -1)), timeout=limit)
    first = dist.get_global_rank(turned, 0)
    note = torch.tensor([float(dist.get_rank())])
    dist.broadcast(note, src=first, group=turned)
    assert note.item() == first
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
