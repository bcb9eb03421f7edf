import torch
import torch.distributed as dist


class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def add(self, value):
        self.total += value
        self.count += 1

    def synced_mean(self):
        t = torch.tensor([self.total, self.count], dtype=torch.float64)
        dist.all_reduce(t)
        self.total, self.count = 0.0, 0
        return (t[0] / t[1]).item()


def main():
    dist.init_process_group("gloo")
    rank, every, steps = dist.get_rank(), 4, 10
    meter = Meter()
    for step in range(steps):
        meter.add(1.0 / (1 + step + rank))
        if (step + 1) % every == 0 or step == steps - 1:
            mean = meter.synced_mean()
            if rank == 0:
                print(f"step {step} loss {mean:.4f}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
