import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class DetectorRun:
    def __init__(self, net, evaluator, root):
        self.net, self.evaluator, self.root = net, evaluator, root
        self.ddp = DDP(net, device_ids=[torch.cuda.current_device()])
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.epoch, self.best_epoch, self.best_map = 0, -1, 0.0

    def validate(self, loader):
        if self.rank == 0:
            score = self.evaluator(self.net, loader)
            if score > self.best_map:
                self.best_map, self.best_epoch = score, self.epoch
                torch.save(self.net.state_dict(), f"{self.root}/best.pt")
        dist.barrier()

    def _norms(self):
        return [m for m in self.net.modules() if isinstance(m, torch.nn.BatchNorm2d)]

    @torch.no_grad()
    def refresh_best(self, loader, rounds=50):
        if self.best_epoch == self.epoch:
            return False
        dist.barrier()
        self.net.load_state_dict(torch.load(f"{self.root}/best.pt", map_location="cuda"))
        self.net.train()
        for _, images in zip(range(rounds), loader):
            self.net(images.cuda())
        for norm in self._norms():
            for buf in (norm.running_mean, norm.running_var):
                dist.all_reduce(buf)
                buf /= self.world
        return True


def main(run, train_epoch, train_loader, val_loader, epochs):
    for run.epoch in range(epochs):
        train_epoch(run.ddp, train_loader)
        run.validate(val_loader)
    if run.refresh_best(train_loader) and run.rank == 0:
        torch.save(run.net.state_dict(), f"{run.root}/best_precise.pt")
