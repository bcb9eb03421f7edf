from datetime import timedelta

import torch
import torch.distributed as dist


class Meter:
    def __init__(self, rank):
        self.rank = rank

    def collect(self, loss, batch):
        return {
            "loss": loss.detach().clone(),
            "bad_rows": torch.tensor(batch["bad_rows"], dtype=torch.int32),
            "updates": torch.tensor(float(self.rank == 0), dtype=torch.float32),
        }


def log(step, metrics):
    for value in metrics.values():
        dist.reduce(value, dst=0)
    if dist.get_rank() == 0:
        print(step, {name: value.item() for name, value in metrics.items()})


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    rank = dist.get_rank()
    meter = Meter(rank)
    weight = torch.zeros(9, requires_grad=True)
    for step in range(12):
        batch = {"x": torch.randn(4, 9), "bad_rows": step % 2}
        loss = (batch["x"] @ weight - 1).pow(2).mean()
        loss.backward()
        dist.all_reduce(weight.grad)
        with torch.no_grad():
            weight -= 0.05 * weight.grad
            weight.grad.zero_()
        if step % 4 == 0:
            log(step, meter.collect(loss, batch))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
