import json

import torch
import torch.distributed as dist
import spmdguard as sg


@sg.rank_local(only="main")
def record(path, **values):
    with open(path, "a") as f:
        f.write(json.dumps(values) + "\n")


class Averager:
    def __init__(self, dim):
        self.weights = torch.zeros(dim)

    def run_epoch(self, epoch, steps):
        """False where the ranks agreed to stop."""
        for step in range(steps):
            grad = self.weights - torch.randn_like(self.weights)
            dist.all_reduce(grad)
            self.weights -= 0.05 * grad / dist.get_world_size()
            record("steps.jsonl", epoch=epoch, step=step, norm=self.weights.norm().item())
            if sg.sync_should_stop():
                return False
        return True

    def evaluate(self):
        score = self.weights.abs().mean()
        dist.all_reduce(score)
        return score.item() / dist.get_world_size()


@sg.run()
def main():
    dist.init_process_group("gloo")
    job = Averager(dim=10)
    for epoch in range(8):
        job.run_epoch(epoch, steps=100)
        record("epochs.jsonl", epoch=epoch, score=job.evaluate())


if __name__ == "__main__":
    main()
