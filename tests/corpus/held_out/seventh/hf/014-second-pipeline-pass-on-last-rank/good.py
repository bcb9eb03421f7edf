import torch
import torch.distributed as dist


class Pipe:
    def __init__(self, stage, shape):
        self.stage, self.shape = stage, shape
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.is_last = self.rank == self.world - 1

    @torch.no_grad()
    def run(self, batches, keep=False):
        kept = []
        for batch in batches:
            if self.rank == 0:
                x = batch.cuda()
            else:
                x = torch.empty(self.shape, device="cuda")
                dist.recv(x, src=self.rank - 1)
            y = self.stage(x)
            if not self.is_last:
                dist.send(y, dst=self.rank + 1)
            elif keep:
                kept.append(y.cpu())
        return kept


def evaluate(pipe, batches, collector=None):
    outputs = pipe.run(batches, keep=True)
    loss = torch.zeros(1, device="cuda")
    if pipe.is_last:
        loss += sum(o.float().pow(2).mean() for o in outputs)
    dist.broadcast(loss, src=pipe.world - 1)
    if collector is not None:
        extra = pipe.run(collector.batches, keep=True)
        if pipe.is_last:
            collector(extra)
    return loss.item()
