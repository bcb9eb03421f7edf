import torch
import torch.distributed as dist


class LocalSGD:
    def __init__(self, period, local_period, size):
        self.period, self.local_period = period, local_period
        self.own, _ = dist.new_subgroups(group_size=size)

    def average(self, step, weight):
        if step % self.period == 0:
            group, n = None, dist.get_world_size()
        elif step % self.local_period == 0:
            group, n = self.own, dist.get_world_size(self.own)
        else:
            return weight
        dist.all_reduce(weight, group=group)
        return weight / n


def main():
    dist.init_process_group("gloo")
    weight = torch.full((2,), float(dist.get_rank()))
    sgd = LocalSGD(period=6, local_period=2, size=2)
    for step in range(1, 13):
        weight = sgd.average(step, weight)
    if dist.get_rank(sgd.own) == 0:
        print(weight.tolist())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
