"""Aggregate per-variable losses of a weather emulator over all data-parallel ranks."""
import torch
import torch.distributed

ATMOS = ["air_temperature_0", "air_temperature_1", "specific_humidity_0", "eastward_wind_0"]
SURFACE = ["surface_pressure", "skin_temperature", "specific_humidity_0"]


class Stepper(torch.nn.Module):
    def __init__(self, prognostic, diagnostic):
        super().__init__()
        self.prognostic = prognostic
        self.diagnostic = diagnostic
        self.net = torch.nn.Linear(len(self.output_names), len(self.output_names))

    @property
    def output_names(self):
        return sorted(set(self.prognostic).union(self.diagnostic))

    def forward(self, x):
        return self.net(x)


class ChannelLossAggregator:
    def __init__(self, names):
        self.sums = {name: torch.zeros(()) for name in names}
        self.batches = 0

    def record(self, prediction, target):
        error = (prediction - target).pow(2).mean(dim=0).detach().cpu()
        for i, name in enumerate(self.sums):
            self.sums[name] = self.sums[name] + error[i]
        self.batches += 1

    def summary(self, label):
        world = torch.distributed.get_world_size()
        logs = {}
        for name, total in self.sums.items():
            mean = total / max(self.batches, 1)
            torch.distributed.all_reduce(mean)
            logs[f"{label}/loss/{name}"] = float(mean) / world
        return logs


def main():
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    torch.manual_seed(0)
    stepper = Stepper(ATMOS, SURFACE)
    names = stepper.output_names
    model = torch.nn.parallel.DistributedDataParallel(stepper)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    data = torch.Generator().manual_seed(100 + rank)
    for epoch in range(5):
        aggregator = ChannelLossAggregator(names)
        for _ in range(32):
            x = torch.randn(16, len(names), generator=data)
            out = model(x)
            loss = (out - x.roll(1, dims=0)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            aggregator.record(out, x.roll(1, dims=0))
        logs = aggregator.summary("train")
        if rank == 0:
            print(epoch, logs)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
