import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler


class PeriodicAverager:
    def __init__(self, period, warmup):
        self.period, self.warmup = period, warmup
        self.step = 0

    @torch.no_grad()
    def average(self, params):
        self.step += 1
        if self.step > self.warmup and (self.step - self.warmup) % self.period:
            return
        flat = torch.nn.utils.parameters_to_vector(params)
        dist.all_reduce(flat, op=dist.ReduceOp.AVG)
        torch.nn.utils.vector_to_parameters(flat, params)


def run(model, dataset, cfg):
    rank, world = dist.get_rank(), dist.get_world_size()
    model = model.cuda()
    for p in model.parameters():
        dist.broadcast(p.data, 0)
    sampler = DistributedSampler(dataset, world, rank, shuffle=True, seed=cfg.seed, drop_last=True)
    loader = DataLoader(dataset, cfg.batch, sampler=sampler, num_workers=cfg.workers, drop_last=True)
    inner = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    averager = PeriodicAverager(cfg.period, cfg.warmup)
    params = [p for p in model.parameters() if p.requires_grad]
    torch.manual_seed(cfg.seed + rank)
    for epoch in range(cfg.epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(params, 1.0)
            if torch.isfinite(norm):
                inner.step()
            inner.zero_grad()
            averager.average(params)
    flat = torch.nn.utils.parameters_to_vector(params).detach()
    dist.all_reduce(flat, op=dist.ReduceOp.AVG)
    torch.nn.utils.vector_to_parameters(flat, params)
    if rank == 0:
        torch.save(model.state_dict(), cfg.out)
    dist.barrier()
