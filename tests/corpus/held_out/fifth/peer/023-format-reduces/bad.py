import torch
import torch.distributed as dist
import torch.nn.functional as F


class RunningMean:
    def __init__(self):
        self.total = torch.zeros(2)

    def __iadd__(self, value):
        self.total += torch.tensor([float(value), 1.0])
        return self

    def compute(self):
        pooled = self.total.clone()
        dist.all_reduce(pooled)
        return (pooled[0] / pooled[1].clamp(min=1)).item()

    def __format__(self, spec):
        return format(self.compute(), spec)

    def reset(self):
        self.total.zero_()


class Trainer:
    def __init__(self, model):
        self.rank = dist.get_rank()
        self.model = torch.nn.parallel.DistributedDataParallel(model)
        self.opt = torch.optim.Adam(self.model.parameters())
        self.loss = RunningMean()

    def fit(self, steps, every=25):
        for step in range(1, steps + 1):
            x = torch.randn(32, 20)
            loss = F.mse_loss(self.model(x), x[:, :5])
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.loss += loss.item()
            if step % every == 0:
                if self.rank == 0:
                    print(f"step {step} loss {self.loss:.4f}", flush=True)
                self.loss.reset()


def main():
    dist.init_process_group("gloo")
    Trainer(torch.nn.Linear(20, 5)).fit(500)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
