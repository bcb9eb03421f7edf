import contextlib
import warnings

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class AutoAccumulate:
    """Splits the batch further whenever the device memory is too small."""

    def __init__(self, model, loss_fn, start=1, limit=32):
        self.model, self.loss_fn = model, loss_fn
        self.parts, self.limit = start, limit

    def _backward(self, x, y):
        pieces = list(zip(x.chunk(self.parts), y.chunk(self.parts)))
        with self.model.no_sync():
            for px, py in pieces:
                loss = self.loss_fn(self.model(px), py) / len(pieces)
                loss.backward()

    def step(self, optimizer, x, y):
        full = torch.ones((), device=x.device)
        while full.item():
            optimizer.zero_grad(set_to_none=True)
            full.zero_()
            try:
                self._backward(x, y)
            except torch.cuda.OutOfMemoryError:
                full.fill_(1)
            dist.all_reduce(full, op=dist.ReduceOp.MAX)
            if full.item():
                if self.parts >= self.limit:
                    raise MemoryError(f"{self.parts} parts are still too large")
                self.parts *= 2
                warnings.warn(f"batch split into {self.parts} parts")
                torch.cuda.empty_cache()
        for p in self.model.parameters():
            dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
        optimizer.step()


def main():
    dist.init_process_group("nccl")
    device = torch.device("cuda", dist.get_rank() % torch.cuda.device_count())
    torch.cuda.set_device(device)
    net = torch.nn.Sequential(torch.nn.Linear(512, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 512))
    model = DDP(net.to(device), device_ids=[device.index])
    optimizer = torch.optim.AdamW(model.parameters())
    stepper = AutoAccumulate(model, torch.nn.functional.mse_loss)
    gen = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(100):
        rows = int(torch.randint(1000, 4000, (), generator=gen))
        x = torch.randn(rows, 512, generator=gen).to(device)
        stepper.step(optimizer, x, x.roll(1, 0))
    with contextlib.suppress(RuntimeError):
        torch.cuda.synchronize()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
