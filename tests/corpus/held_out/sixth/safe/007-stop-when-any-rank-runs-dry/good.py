import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset

_END = object()


class ShardFiles(IterableDataset):
    def __init__(self, files, rank, world):
        self.files = files[rank::world]

    def __iter__(self):
        for path in self.files:
            for row in torch.load(path):
                yield row["x"], row["y"]


class LockstepStream:
    """Yields until the first rank has no more rows."""

    def __init__(self, loader, group):
        self.loader, self.group = loader, group

    def __iter__(self):
        source = iter(self.loader)
        while True:
            item = next(source, _END)
            have = torch.tensor([0 if item is _END else 1])
            dist.all_reduce(have, op=dist.ReduceOp.MIN, group=self.group)
            if have.item() == 0:
                return
            yield item


def train(model, files, cfg):
    rank, world = dist.get_rank(), dist.get_world_size()
    cpu_group = dist.new_group(backend="gloo")
    ddp = DDP(model.cuda())
    opt = torch.optim.SGD(ddp.parameters(), lr=cfg.lr)
    loader = DataLoader(ShardFiles(files, rank, world), batch_size=cfg.batch)
    seen = torch.zeros(1, device="cuda")
    for epoch in range(cfg.epochs):
        for x, y in LockstepStream(loader, cpu_group):
            loss = torch.nn.functional.mse_loss(ddp(x.cuda()), y.cuda())
            loss.backward()
            opt.step()
            opt.zero_grad()
            seen += x.size(0)
        total = seen.clone()
        dist.all_reduce(total)
        if rank == 0:
            print(epoch, int(total.item()))
    dist.destroy_process_group(cpu_group)
