import torch
import torch.distributed as dist


class RouterBias:
    def __init__(self, n_experts, ep_size, rate=1e-3):
        self.bias = torch.zeros(n_experts, device="cuda")
        self.load = torch.zeros(n_experts, device="cuda")
        self.rate = rate
        self.group = self.expert_group(ep_size)

    @staticmethod
    def expert_group(ep_size):
        world, rank = dist.get_world_size(), dist.get_rank()
        if ep_size == world:
            return dist.group.WORLD
        mine = None
        for start in range(0, world, ep_size):
            group = dist.new_group(list(range(start, start + ep_size)))
            if start <= rank < start + ep_size:
                mine = group
        return mine

    def count(self, chosen):
        self.load += torch.bincount(chosen.flatten(), minlength=self.load.numel())

    def update(self):
        dist.all_reduce(self.load, group=self.group)
        self.bias += self.rate * torch.sign(self.load.mean() - self.load)
        self.load.zero_()


def attach(model, n_experts, ep_size):
    for module in model.modules():
        if hasattr(module, "router"):
            module.balance = RouterBias(n_experts, ep_size)
