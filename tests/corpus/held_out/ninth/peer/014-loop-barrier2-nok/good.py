from datetime import timedelta

import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    i, j, n = 1, 10, 0
    if dist.get_rank() % 2:
        while i < 10:
            dist.barrier()
            i += 1
    else:
        while j < 20:
            while n < 9:
                dist.barrier()
                n += 1
            j += 1
    dist.destroy_process_group()


main()
