import dataclasses
import statistics
import time
from typing import List, Optional

import torch
import torch.distributed as dist


@dataclasses.dataclass
class ReportInterval:
    """Turns 'every N seconds' into 'every K steps', with the same K on all the ranks."""

    seconds: float
    warmup: int = 16
    steps: int = 0
    every: Optional[int] = None
    last: Optional[float] = None
    durations: List[float] = dataclasses.field(default_factory=list)

    def _agree(self) -> None:
        guess = torch.tensor([self.seconds / max(statistics.median(self.durations), 1e-6)], device="cuda")
        if dist.is_initialized():
            dist.all_reduce(guess, op=dist.ReduceOp.MAX)
        self.every = max(1, int(guess.item()))

    def tick(self) -> bool:
        self.steps += 1
        if self.every is not None:
            return self.steps % self.every == 0
        now = time.monotonic()
        if self.last is not None:
            self.durations.append(now - self.last)
            if len(self.durations) == self.warmup:
                self._agree()
                self.durations.clear()
        self.last = now
        return False


def gpu_report() -> torch.Tensor:
    free, total = torch.cuda.mem_get_info()
    return torch.tensor([total - free, torch.cuda.max_memory_allocated()], dtype=torch.float64, device="cuda")


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4096, 4096).cuda())
    opt = torch.optim.SGD(model.parameters(), lr=1e-3)
    interval = ReportInterval(seconds=30.0)
    for step in range(5000):
        model(torch.randn(64, 4096, device="cuda")).square().mean().backward()
        opt.step()
        opt.zero_grad()
        if interval.tick():
            usage = gpu_report()
            dist.reduce(usage, dst=0, op=dist.ReduceOp.MAX)
            if dist.get_rank() == 0:
                print(f"step {step}: max used {usage[0] / 2**30:.1f} GiB, peak {usage[1] / 2**30:.1f} GiB")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
