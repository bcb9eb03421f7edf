import deepspeed
import torch


class Job:
    def __init__(self, args, net: torch.nn.Module):
        self.engine, self.optimizer, _, _ = deepspeed.initialize(
            args=args, model=net, model_parameters=net.parameters()
        )
        self.steps = 0

    def keep(self, folder: str) -> None:
        if self.engine.global_rank == 0:
            print(f"keeping step {self.steps} in {folder}")
        self.engine.save_checkpoint(folder, tag=f"step{self.steps}")

    def step(self, batch: torch.Tensor) -> None:
        loss = self.engine(batch).mean()
        self.engine.backward(loss)
        self.engine.step()
        self.steps += 1


def main(args) -> None:
    job = Job(args, torch.nn.Linear(4, 4))
    for _ in range(100):
        job.step(torch.randn(8, 4, device=job.engine.device))
    job.keep("checkpoints")
