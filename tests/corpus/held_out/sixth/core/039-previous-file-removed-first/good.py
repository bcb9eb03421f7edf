import glob
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class RollingCheckpoint:
    def __init__(self, folder, prefix="state"):
        self.folder, self.prefix = folder, prefix

    def _all(self):
        return sorted(glob.glob(os.path.join(self.folder, f"{self.prefix}_*.pt")))

    def save(self, step, payload):
        """Keep exactly one file: states with optimizer are large."""
        if dist.get_rank() == 0:
            target = os.path.join(self.folder, f"{self.prefix}_{step:09d}.pt")
            old = [f for f in self._all() if f != target]
            torch.save(payload, target + ".tmp")
            os.replace(target + ".tmp", target)
            for f in old:
                os.remove(f)
        dist.barrier()

    def load(self, map_location):
        box = [self._all()[-1:] if dist.get_rank() == 0 else None]
        dist.broadcast_object_list(box, src=0, device=map_location)
        return torch.load(box[0][0], map_location=map_location) if box[0] else None


def make_model(num_classes=80):
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 64, 7, 2, 3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
        torch.nn.Linear(64, num_classes),
    )


def main(make_loader, folder="ckpt", epochs=300, every=2000):
    dist.init_process_group("nccl")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    os.makedirs(folder, exist_ok=True)
    model = DDP(make_model().to(device), device_ids=[device.index])
    optim = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    ckpt = RollingCheckpoint(folder)
    step, first = 0, 0
    state = ckpt.load(device)
    if state is not None:
        model.module.load_state_dict(state["model"])
        optim.load_state_dict(state["optim"])
        step, first = state["step"], state["epoch"]
    loader = make_loader(dist.get_rank(), dist.get_world_size())
    for epoch in range(first, epochs):
        loader.sampler.set_epoch(epoch)
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x.to(device)), y.to(device))
            optim.zero_grad()
            loss.backward()
            optim.step()
            step += 1
            if step % every == 0:
                payload = {"model": model.module.state_dict(), "optim": optim.state_dict(), "step": step, "epoch": epoch}
                ckpt.save(step, payload)
    dist.destroy_process_group()
