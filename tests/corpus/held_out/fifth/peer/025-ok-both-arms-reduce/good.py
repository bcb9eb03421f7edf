import torch
import torch.distributed as dist


class ParameterAverager:
    """Rank 0 carries twice the weight, it holds the curated shard."""

    def __init__(self, model, curated_weight=2.0):
        self.model = model
        self.curated_weight = curated_weight
        self.rank, self.world = dist.get_rank(), dist.get_world_size()

    def _flat(self):
        return torch.cat([p.data.reshape(-1) for p in self.model.parameters()])

    def _unflat(self, flat):
        offset = 0
        for p in self.model.parameters():
            p.data.copy_(flat[offset:offset + p.numel()].view_as(p))
            offset += p.numel()

    def average(self):
        flat = self._flat()
        if self.rank == 0:
            flat.mul_(self.curated_weight)
            dist.all_reduce(flat)
            print("averaged, norm", flat.norm().item())
        else:
            dist.all_reduce(flat)
        self._unflat(flat / (self.world - 1 + self.curated_weight))


def main(rounds=10):
    dist.init_process_group("gloo")
    model = torch.nn.Linear(12, 3)
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    averager = ParameterAverager(model)
    for _ in range(rounds):
        for _ in range(20):
            opt.zero_grad()
            model(torch.randn(8, 12)).square().mean().backward()
            opt.step()
        averager.average()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
