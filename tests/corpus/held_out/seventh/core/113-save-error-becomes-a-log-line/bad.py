import logging
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def save_checkpoint(folder, state):
    path = os.path.join(folder, "checkpoint.torch")
    try:
        torch.save(state, path + ".tmp")
        os.replace(path + ".tmp", path)
    except Exception:
        logging.exception("could not write %s", path)
        return False
    return True


class CheckpointHook:
    def __init__(self, folder, every):
        self.folder, self.every = folder, every

    def on_phase_end(self, epoch, model):
        if dist.get_rank() == 0 and epoch % self.every == 0:
            save_checkpoint(self.folder, {"epoch": epoch, "model": model.module.state_dict()})


def main():
    logging.basicConfig(level=logging.INFO)
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    model = DDP(torch.nn.Linear(6, 6))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = CheckpointHook(os.environ.get("OUT", "/tmp/not_made_yet"), every=2)
    for epoch in range(6):
        for _ in range(3):
            opt.zero_grad()
            model(torch.randn(5, 6)).pow(2).mean().backward()
            opt.step()
        hook.on_phase_end(epoch, model)
    if dist.get_rank() == 0:
        logging.info("training done, checkpoint in %s", hook.folder)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
