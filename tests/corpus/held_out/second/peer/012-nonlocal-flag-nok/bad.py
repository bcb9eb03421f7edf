from datetime import timedelta

import torch.distributed as dist


def build():
    wait = True

    def configure(place):
        nonlocal wait
        wait = place != 0

    def run():
        if wait:
            dist.barrier()
        return wait

    return configure, run


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    configure, run = build()
    configure(dist.get_rank())
    print(run())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
