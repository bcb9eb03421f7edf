import re
import shutil
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.stateful import Stateful


class AppState(Stateful):
    def __init__(self, model, optim):
        self.model, self.optim, self.step = model, optim, 0

    def state_dict(self):
        m, o = get_state_dict(self.model, self.optim)
        return {"m": m, "o": o, "step": self.step}

    def load_state_dict(self, sd):
        set_state_dict(self.model, self.optim, model_state_dict=sd["m"], optim_state_dict=sd["o"])
        self.step = sd["step"]


class AsyncCheckpoint:
    def __init__(self, root, every, keep=3):
        self.root, self.every, self.keep = Path(root), every, keep
        self.root.mkdir(parents=True, exist_ok=True)
        self.group = dist.new_group(backend="gloo")
        self.pending = None

    def wait(self):
        if self.pending is not None:
            self.pending.result()
            self.pending = None

    def prune(self):
        if dist.get_rank() != 0:
            return
        found = sorted((int(m.group(1)), p) for p in self.root.iterdir()
                       if (m := re.fullmatch(r"step-(\d+)", p.name)) and (p / ".metadata").exists())
        for _, path in found[:-self.keep]:
            shutil.rmtree(path, ignore_errors=True)

    def maybe_save(self, app, force=False):
        if not force and app.step % self.every:
            return
        self.wait()
        self.prune()
        target = str(self.root / f"step-{app.step}")
        if force:
            dcp.save({"app": app}, checkpoint_id=target, process_group=self.group)
        else:
            self.pending = dcp.async_save({"app": app}, checkpoint_id=target, process_group=self.group)

    def close(self):
        self.wait()


def loop(app, loader, ckpt, total):
    for batch in loader:
        app.step += 1
        app.model(batch.cuda()).sum().backward()
        app.optim.step()
        app.optim.zero_grad()
        last = app.step == total
        ckpt.maybe_save(app, force=last)
        if last:
            break
    ckpt.close()
