import torch
import torch.distributed as dist


class Edge:
    """One pipeline edge; the header goes over it once."""

    def __init__(self, peer):
        self.peer = peer
        self.meta = None

    def send(self, t):
        if self.meta is None:
            head = torch.zeros(5, dtype=torch.long, device=t.device)
            head[0] = t.dim()
            head[1:1 + t.dim()] = torch.tensor(t.shape, device=t.device)
            dist.send(head, self.peer)
            self.meta = tuple(t.shape)
        dist.send(t.contiguous(), self.peer)

    def recv(self, device):
        if self.meta is None:
            head = torch.zeros(5, dtype=torch.long, device=device)
            dist.recv(head, self.peer)
            n = int(head[0])
            self.meta = tuple(head[1:1 + n].tolist())
        buf = torch.empty(self.meta, device=device)
        dist.recv(buf, self.peer)
        return buf


class FillDrainPipe:
    def __init__(self, module, loss_fn, device):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.module, self.loss_fn, self.device = module, loss_fn, device
        self.first, self.last = self.rank == 0, self.rank == self.world - 1
        self.fwd_in = None if self.first else Edge(self.rank - 1)
        self.fwd_out = None if self.last else Edge(self.rank + 1)

    def step(self, micro):
        """micro: fixed-size list of (x, y) on every rank."""
        kept, losses = [], []
        for x, y in micro:
            if self.first:
                inp = x.to(self.device)
            else:
                inp = self.fwd_in.recv(self.device).requires_grad_()
            out = self.module(inp)
            if self.last:
                out = self.loss_fn(out, y.to(self.device)) / len(micro)
                losses.append(out.detach())
            else:
                self.fwd_out.send(out.detach())
            kept.append((inp, out))
        for inp, out in kept:
            if self.last:
                out.backward()
            else:
                grad = torch.empty_like(out)
                dist.recv(grad, self.rank + 1)
                out.backward(grad)
            if not self.first:
                dist.send(inp.grad, self.rank - 1)
        total = torch.stack(losses).sum() if self.last else torch.zeros((), device=self.device)
        dist.broadcast(total, self.world - 1)
        return total
