import torch
import torch.distributed as dist


def global_count(n):
    t = torch.tensor([n], dtype=torch.long)
    dist.all_reduce(t)
    return int(t)


class HardExampleMiner:
    def __init__(self, margin=0.7, budget=4096):
        self.margin = margin
        self.budget = budget
        self.bank = []

    def update(self, losses, rows):
        mask = losses > self.margin
        if (kept := int(mask.sum())) and (total := global_count(kept)) <= self.budget:
            self.bank.append(rows[mask])
            return total
        return 0

    def __len__(self):
        return sum(len(b) for b in self.bank)


def main(steps=200):
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(32, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    miner = HardExampleMiner()
    for _ in range(steps):
        rows = torch.randn(16, 32)
        losses = (model(rows).squeeze(1) - rows[:, 0]).square()
        opt.zero_grad()
        losses.mean().backward()
        opt.step()
        miner.update(losses.detach(), rows)
    print("bank", len(miner))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
