"""Automatic microbatch size: when any rank runs out of memory, all halve the microbatch and redo the batch."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn


class AutoMicrobatchTrainer:
    def __init__(self, model: nn.Module, optimizer, device, microbatch: int):
        self.model, self.optimizer, self.device = model, optimizer, device
        self.microbatch = microbatch

    def _local_pass(self, x, y) -> float:
        total = 0.0
        for xs, ys in zip(x.split(self.microbatch), y.split(self.microbatch)):
            loss = nn.functional.mse_loss(self.model(xs), ys, reduction="sum") / len(x)
            loss.backward()
            total += loss.item()
        return total

    def _average_grads(self):
        world = dist.get_world_size()
        for p in self.model.parameters():
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            dist.all_reduce(p.grad)
            p.grad.div_(world)

    def step(self, x, y) -> float:
        while True:
            oom = 0
            loss = float("nan")
            self.optimizer.zero_grad(set_to_none=True)
            try:
                loss = self._local_pass(x, y)
            except torch.cuda.OutOfMemoryError:
                oom = 1
            flag = torch.tensor([oom], dtype=torch.uint8, device=self.device)
            dist.all_reduce(flag, op=dist.ReduceOp.MAX)
            if flag.item():
                if self.microbatch == 1:
                    raise RuntimeError("out of memory with a microbatch of one")
                self.microbatch //= 2
                torch.cuda.empty_cache()
                continue
            self._average_grads()
            self.optimizer.step()
            return loss


def main():
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(1024, 8192), nn.GELU(), nn.Linear(8192, 1024)).cuda()
    trainer = AutoMicrobatchTrainer(net, torch.optim.AdamW(net.parameters()), torch.device("cuda", local), 256)
    torch.manual_seed(1 + dist.get_rank())
    for step in range(50):
        x = torch.randn(256, 1024, device="cuda")
        loss = trainer.step(x, x.flip(0))
        if dist.get_rank() == 0 and step % 10 == 0:
            print(step, trainer.microbatch, loss)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
