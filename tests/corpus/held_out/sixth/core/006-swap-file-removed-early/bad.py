import os
import tempfile

import torch
import torch.distributed as dist
import torchvision
from torch.nn.parallel import DistributedDataParallel as DDP


class SegmentationWarmStart:
    """Average several old snapshots on rank 0 and hand the result over through the shared disk."""

    def __init__(self, snapshots, work_dir):
        self.snapshots = snapshots
        self.path = os.path.join(work_dir, "warm_start.pt")

    def _average(self):
        total = None
        for s in self.snapshots:
            sd = torch.load(s, map_location="cpu")
            if total is None:
                total = {k: v.double() if v.is_floating_point() else v for k, v in sd.items()}
            else:
                for k, v in sd.items():
                    if v.is_floating_point():
                        total[k] += v.double()
        return {k: (v / len(self.snapshots)).float() if v.is_floating_point() else v for k, v in total.items()}

    def apply(self, model, device):
        rank = dist.get_rank()
        if rank == 0:
            torch.save(self._average(), self.path)
        dist.barrier()
        state = torch.load(self.path, map_location=device)
        model.load_state_dict(state)
        if rank == 0:
            os.remove(self.path)
        return model


def train_one_epoch(model, loader, optim, device):
    model.train()
    for img, mask in loader:
        out = model(img.to(device))["out"]
        loss = torch.nn.functional.cross_entropy(out, mask.to(device), ignore_index=255)
        optim.zero_grad(set_to_none=True)
        loss.backward()
        optim.step()


def main(snapshots, make_loader, work_dir=tempfile.gettempdir(), epochs=30):
    dist.init_process_group("nccl")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    net = torchvision.models.segmentation.fcn_resnet50(num_classes=21).to(device)
    net = SegmentationWarmStart(snapshots, work_dir).apply(net, device)
    model = DDP(net, device_ids=[device.index])
    optim = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loader = make_loader(dist.get_rank(), dist.get_world_size())
    for epoch in range(epochs):
        loader.sampler.set_epoch(epoch)
        train_one_epoch(model, loader, optim, device)
    dist.destroy_process_group()
