import os

import torch
import torch.distributed as dist


class Pipe:
    def __init__(self, net, shape, n_micro):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.net, self.shape, self.n_micro = net, shape, n_micro
        self.first, self.last = self.rank == 0, self.rank == self.world - 1

    def _p2p(self, send_next=None, send_prev=None, recv_prev=False, recv_next=False):
        ops, prev, nxt = [], None, None
        if send_prev is not None:
            ops.append(dist.P2POp(dist.isend, send_prev.contiguous(), self.rank - 1))
        if recv_prev:
            prev = torch.empty(self.shape, device="cuda", requires_grad=True)
            ops.append(dist.P2POp(dist.irecv, prev.detach(), self.rank - 1))
        if send_next is not None:
            ops.append(dist.P2POp(dist.isend, send_next.detach().contiguous(), self.rank + 1))
        if recv_next:
            nxt = torch.empty(self.shape, device="cuda")
            ops.append(dist.P2POp(dist.irecv, nxt, self.rank + 1))
        if ops:
            for req in dist.batch_isend_irecv(ops):
                req.wait()
        return prev, nxt

    def _fwd(self, x, data):
        x = next(data) if self.first else x
        y = self.net(x)
        return x, (y.square().mean() if self.last else y)

    def _bwd(self, x, y, grad):
        torch.autograd.backward(y, None if self.last else grad)
        return None if self.first else x.grad

    def run(self, data):
        warmup = min(self.world - self.rank - 1, self.n_micro)
        steady = self.n_micro - warmup
        kept = []
        for _ in range(warmup):
            x, _ = self._p2p(recv_prev=not self.first)
            x, y = self._fwd(x, data)
            self._p2p(send_next=y)
            kept.append((x, y))
        x, _ = self._p2p(recv_prev=not self.first and steady > 0)
        for i in range(steady):
            x, y = self._fwd(x, data)
            kept.append((x, y))
            _, grad = self._p2p(send_next=None if self.last else y, recv_next=not self.last)
            g = self._bwd(*kept.pop(0), grad)
            more = i < steady - 1
            x, _ = self._p2p(send_prev=g, recv_prev=more and not self.first)
        for _ in range(warmup):
            _, grad = self._p2p(recv_next=True)
            self._p2p(send_prev=self._bwd(*kept.pop(0), grad))


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    net = torch.nn.Sequential(torch.nn.Linear(128, 128), torch.nn.Tanh()).cuda()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    pipe = Pipe(net, (16, 128), n_micro=8)
    dist.barrier()
    for step in range(20):
        pipe.run(iter(torch.randn(8, 16, 128, device="cuda")))
        opt.step()
        opt.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
