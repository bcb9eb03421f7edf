from datetime import timedelta

import torch.distributed as dist


class Recorder:
    def __init__(self, members):
        self.members = members
        self.group = dist.new_group(members, timeout=timedelta(seconds=5))

    def describe(self):
        return f"{dist.get_world_size(self.group)} recorders"


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=5))
    recorder = Recorder(list(range(dist.get_world_size())))
    if dist.get_rank() == 0:
        print(recorder.describe())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
