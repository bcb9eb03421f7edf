from datetime import timedelta

import torch.distributed as dist


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    opts = {"level": 1}
    view = dict(opts)
    if opts["level"] > 0:
        dist.barrier()
    view["level"] = dist.get_rank()
    if opts["level"] > 0:
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
