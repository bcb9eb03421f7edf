import shutil
import tarfile
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist


def shared_folder():
    box = [tempfile.mkdtemp(prefix="resume-") if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, src=0)
    return Path(box[0])


def load_parts(archive, model, optimizer):
    folder = shared_folder()
    if dist.get_rank() == 0:
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
    dist.barrier()
    common = torch.load(folder / "common.pt")
    part = torch.load(folder / f"optim_rank{dist.get_rank()}.pt")
    model.load_state_dict(common["model"])
    optimizer.load_state_dict(part)
    dist.barrier()
    if dist.get_rank() == 0:
        shutil.rmtree(folder)
    return common["step"]


def resume_and_train(archive, model, optimizer, data):
    start = load_parts(archive, model, optimizer)
    for step, batch in enumerate(data, start=start):
        model(batch).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
