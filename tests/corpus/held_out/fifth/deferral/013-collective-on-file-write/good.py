import json
import subprocess
from pathlib import Path

import spmdguard
import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def git_state():
    done = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


@spmdguard.rank_local(name="manifest")
def write_manifest(folder, step, loss):
    target = Path(folder) / "manifest.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_suffix(".tmp")
    draft.write_text(json.dumps({"step": step, "loss": loss, "git": git_state()}))
    draft.replace(target)


class Runner:
    def __init__(self, dim=48):
        self.model = DDP(torch.nn.Linear(dim, dim))
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.dim = dim

    @spmdguard.collective
    def advance(self):
        loss = self.model(torch.randn(4, self.dim)).square().mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


def main(steps=600):
    spmdguard.init_process_group("gloo")
    runner = Runner()
    for step in range(steps):
        loss = runner.advance()
        if step % 50 == 0 and spmdguard.is_main_process():
            write_manifest("out/run1", step, loss)
        if spmdguard.sync_should_stop():
            break
    spmdguard.destroy_process_group()
    spmdguard.raise_if_deferred_error()


if __name__ == "__main__":
    main()
