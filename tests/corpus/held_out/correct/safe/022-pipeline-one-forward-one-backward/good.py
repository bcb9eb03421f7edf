"""1F1B pipeline schedule written out with point-to-point calls."""
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn

MICRO, SEQ_DIM, MICROBATCHES = 8, 256, 12


class Stage:
    def __init__(self, module, device):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.module, self.device = module, device

    @property
    def is_first(self):
        return self.rank == 0

    @property
    def is_last(self):
        return self.rank == self.world - 1

    def _buffer(self):
        return torch.empty(MICRO, SEQ_DIM, device=self.device)

    def recv_forward(self):
        if self.is_first:
            return None
        t = self._buffer()
        dist.recv(t, src=self.rank - 1)
        return t.requires_grad_()

    def send_forward(self, out):
        if not self.is_last:
            dist.send(out.detach(), dst=self.rank + 1)

    def recv_backward(self):
        if self.is_last:
            return None
        t = self._buffer()
        dist.recv(t, src=self.rank + 1)
        return t

    def send_backward(self, grad):
        if not self.is_first:
            dist.send(grad, dst=self.rank - 1)

    def send_forward_recv_backward(self, out):
        if self.is_last:
            return None
        grad = self._buffer()
        ops = [dist.P2POp(dist.isend, out.detach(), self.rank + 1), dist.P2POp(dist.irecv, grad, self.rank + 1)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        return grad

    def send_backward_recv_forward(self, grad):
        if self.is_first:
            return None
        act = self._buffer()
        ops = [dist.P2POp(dist.isend, grad, self.rank - 1), dist.P2POp(dist.irecv, act, self.rank - 1)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        return act.requires_grad_()

    def forward(self, act, batch, losses):
        x, y = batch
        out = self.module(x if self.is_first else act)
        if self.is_last:
            out = nn.functional.mse_loss(out, y) / MICROBATCHES
            losses.append(out.detach())
        return out

    def backward(self, act, out, grad):
        torch.autograd.backward(out, grad_tensors=grad)
        return None if act is None else act.grad


def run_schedule(stage, batches):
    warmup = min(stage.world - stage.rank - 1, MICROBATCHES)
    remaining = MICROBATCHES - warmup
    feed, held, losses = iter(batches), [], []

    for _ in range(warmup):
        act = stage.recv_forward()
        out = stage.forward(act, next(feed), losses)
        stage.send_forward(out)
        held.append((act, out))

    act = stage.recv_forward() if remaining > 0 else None
    for i in range(remaining):
        out = stage.forward(act, next(feed), losses)
        grad = stage.send_forward_recv_backward(out)
        held.append((act, out))
        old_act, old_out = held.pop(0)
        act_grad = stage.backward(old_act, old_out, grad)
        if i == remaining - 1:
            stage.send_backward(act_grad)
        else:
            act = stage.send_backward_recv_forward(act_grad)

    for _ in range(warmup):
        old_act, old_out = held.pop(0)
        grad = stage.recv_backward()
        stage.send_backward(stage.backward(old_act, old_out, grad))
    return losses


def make_batches(step, device):
    g = torch.Generator().manual_seed(step)
    for _ in range(MICROBATCHES):
        x = torch.randn(MICRO, SEQ_DIM, generator=g)
        yield x.to(device), x.flip(1).to(device)


def main():
    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", timeout=timedelta(minutes=5), device_id=device)
    rank, world = dist.get_rank(), dist.get_world_size()
    assert world >= 2, "a pipeline needs two stages or more"
    torch.manual_seed(rank)

    block = nn.Sequential(nn.Linear(SEQ_DIM, SEQ_DIM), nn.Tanh(), nn.Linear(SEQ_DIM, SEQ_DIM)).to(device)
    stage = Stage(block, device)
    optimizer = torch.optim.Adam(block.parameters(), lr=1e-3)

    for step in range(300):
        optimizer.zero_grad(set_to_none=True)
        losses = run_schedule(stage, make_batches(step, device))
        optimizer.step()
        if step % 20 == 0:
            total = torch.stack(losses).sum() if stage.is_last else torch.zeros((), device=device)
            dist.broadcast(total, src=world - 1)
            if rank == 0:
                print(f"step {step}: loss {total.item():.5f}")

    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
