from datetime import timedelta

import torch.distributed as dist


def number(conf):
    conf["level"] = dist.get_rank()


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    settings = {"level": 1, "name": "a"}
    view = dict(settings)
    number(view)
    if settings["level"]:
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
