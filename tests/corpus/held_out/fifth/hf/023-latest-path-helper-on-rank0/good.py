import json
import os
import re
import shutil
from typing import Optional

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

_EPOCH = re.compile(r"^epoch_(\d+)$")


def _find_latest(root: str) -> Optional[str]:
    if not os.path.isdir(root):
        return None
    epochs = [int(m.group(1)) for m in map(_EPOCH.match, os.listdir(root)) if m]
    return os.path.join(root, f"epoch_{max(epochs)}") if epochs else None


def get_latest_checkpoint_path(root: str) -> Optional[str]:
    """Looks on rank 0 and tells the others."""
    box = [_find_latest(root) if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, src=0)
    return box[0]


class Saver:
    def __init__(self, root: str, keep: int = 3):
        self.root = root
        self.keep = keep

    def save(self, epoch: int, state: dict) -> None:
        dcp.save(state, checkpoint_id=os.path.join(self.root, f"epoch_{epoch}"))
        if dist.get_rank() == 0:
            self._rotate(epoch)
        dist.barrier()

    def _rotate(self, epoch: int) -> None:
        old = os.path.join(self.root, f"epoch_{epoch - self.keep}")
        shutil.rmtree(old, ignore_errors=True)

    def restore(self, state: dict) -> Optional[str]:
        path = get_latest_checkpoint_path(self.root)
        if path is not None:
            dcp.load(state, checkpoint_id=path)
        return path

    def publish(self, registry: str, metrics: dict) -> None:
        if dist.get_rank() == 0:
            latest = _find_latest(self.root)
            entry = {"checkpoint": latest, "metrics": metrics}
            with open(os.path.join(registry, "latest.json"), "w") as f:
                json.dump(entry, f)


def fit(model, optimizer, loader, epochs: int, root: str, registry: str) -> None:
    saver = Saver(root)
    state = {"model": model.state_dict(), "epoch": torch.tensor(0)}
    saver.restore(state)
    for epoch in range(int(state["epoch"]), epochs):
        total = torch.zeros(1, device="cuda")
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            total += loss.detach()
        dist.all_reduce(total)
        saver.save(epoch, {"model": model.state_dict(), "epoch": torch.tensor(epoch + 1)})
        saver.publish(registry, {"loss": total.item()})
