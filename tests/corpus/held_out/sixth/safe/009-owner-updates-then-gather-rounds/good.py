import torch
import torch.distributed as dist


def orthogonalise(g, steps=5):
    x = g.bfloat16()
    flip = x.size(0) > x.size(1)
    x = x.T if flip else x
    x = x / (x.norm() + 1e-7)
    for _ in range(steps):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return (x.T if flip else x).to(g.dtype)


class ShardedMuon(torch.optim.Optimizer):
    def __init__(self, params, lr=0.02, momentum=0.95):
        by_shape = {}
        for p in params:
            by_shape.setdefault(tuple(p.shape), []).append(p)
        groups = [{"params": by_shape[s]} for s in sorted(by_shape)]
        super().__init__(groups, dict(lr=lr, momentum=momentum))

    @torch.no_grad()
    def step(self):
        rank, world = dist.get_rank(), dist.get_world_size()
        for group in self.param_groups:
            params = group["params"]
            for p in params:
                if p.grad is None:
                    p.grad = torch.zeros_like(p)
                dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
            lacking = -len(params) % world
            padded = list(params) + [torch.empty_like(params[-1]) for _ in range(lacking)]
            for base in range(0, len(params), world):
                mine = base + rank
                if mine < len(params):
                    p = params[mine]
                    buf = self.state[p].setdefault("buf", torch.zeros_like(p))
                    buf.mul_(group["momentum"]).add_(p.grad)
                    p.add_(orthogonalise(buf), alpha=-group["lr"])
                send = padded[mine].clone()
                dist.all_gather([t.data for t in padded[base:base + world]], send)


def train(model, loader, steps):
    matrices = [p for p in model.blocks.parameters() if p.ndim == 2]
    rest = [p for p in model.parameters() if not any(p is m for m in matrices)]
    muon = ShardedMuon(matrices)
    adam = torch.optim.AdamW(rest, lr=3e-4)
    for _, (x, y) in zip(range(steps), loader):
        model(x.cuda(), y.cuda()).backward()
        for p in rest:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
        muon.step()
        adam.step()
        model.zero_grad()
