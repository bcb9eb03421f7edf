from datetime import datetime
from pathlib import Path

import deepspeed
import torch.distributed as dist


def run_folder(root, job):
    now = [datetime.now()]
    dist.broadcast_object_list(now, src=0)
    return Path(root) / f"{now[0]:%Y-%m-%d}" / f"{now[0]:%H-%M-%S}_{job}"


def main(model, loader, cfg):
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(),
                                      config=cfg.deepspeed)
    folder = run_folder(cfg.root, cfg.job)
    folder.mkdir(parents=True, exist_ok=True)
    for step, batch in enumerate(loader, start=1):
        engine.backward(engine(**batch).loss)
        engine.step()
        if step % cfg.save_every == 0:
            engine.save_checkpoint(str(folder), tag=f"step{step}")
    if dist.get_rank() == 0:
        print("checkpoints in", folder)
