import argparse
import os

import torch
import torch.distributed as dist
import torchvision


class Comm:
    """A little horovod-like layer on torch.distributed."""

    def __init__(self):
        dist.init_process_group("nccl")
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.local_rank = int(os.environ["LOCAL_RANK"])
        torch.cuda.set_device(self.local_rank)

    def broadcast_state(self, module):
        for t in module.state_dict().values():
            dist.broadcast(t, src=0)

    def broadcast_object(self, obj):
        box = [obj]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def average_gradients(self, module):
        for p in module.parameters():
            dist.all_reduce(p.grad)
            p.grad.div_(self.size)

    def close(self):
        dist.destroy_process_group()


def train_epoch(comm, model, optim, loader):
    model.train()
    for images, labels in loader:
        out = model(images.cuda(non_blocking=True))
        loss = torch.nn.functional.cross_entropy(out, labels.cuda(non_blocking=True), label_smoothing=0.1)
        optim.zero_grad()
        loss.backward()
        comm.average_gradients(model)
        optim.step()


def main(make_loader):
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=90)
    p.add_argument("--ckpt", default="results/rn50.pt")
    args = p.parse_args()
    comm = Comm()
    model = torchvision.models.resnet50().cuda()
    optim = torch.optim.SGD(model.parameters(), lr=0.256, momentum=0.875)
    start_epoch, optim_state = 0, None
    if comm.rank == 0 and os.path.exists(args.ckpt):
        ckpt = torch.load(args.ckpt, map_location="cpu")
        model.load_state_dict(ckpt["model"])
        optim_state = ckpt["optim"]
        start_epoch = ckpt["epoch"] + 1
    comm.broadcast_state(model)
    optim_state = comm.broadcast_object(optim_state)
    if optim_state is not None:
        optim.load_state_dict(optim_state)
    loader = make_loader(comm.rank, comm.size)
    for epoch in range(start_epoch, args.epochs):
        loader.sampler.set_epoch(epoch)
        train_epoch(comm, model, optim, loader)
        if comm.rank == 0:
            torch.save({"model": model.state_dict(), "optim": optim.state_dict(), "epoch": epoch}, args.ckpt + ".tmp")
            os.replace(args.ckpt + ".tmp", args.ckpt)
    comm.close()
