import pathlib
import pickle

import torch
import torch.distributed as dist
from spmdguard import deferring, has_deferred_error, is_main_process, raise_if_deferred_error, sync_should_stop
from torch.nn.parallel import DistributedDataParallel as DDP


class Recorder:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.losses = []

    def curve(self, loss):
        self.losses.append(loss)
        (self.folder / "curve.pkl").write_bytes(pickle.dumps(self.losses))

    def picture(self, step, image):
        with open(self.folder / f"{step:05d}.pgm", "wb") as f:
            f.write(b"P5 8 8 255\n" + bytes((image.clamp(0, 1) * 255).to(torch.uint8).flatten().tolist()))


def train_loop(model, recorder, steps):
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(steps):
        clean = torch.rand(4, 64)
        restored = model(clean + 0.1 * torch.randn_like(clean))
        loss = torch.nn.functional.l1_loss(restored, clean)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if is_main_process():
            with deferring("curve"):
                recorder.curve(loss.item())
            if step % 50 == 0:
                recorder.picture(step, restored[0].detach())
        if sync_should_stop(has_deferred_error()):
            break


def main():
    dist.init_process_group("gloo")
    train_loop(DDP(torch.nn.Linear(64, 64)), Recorder("out"), steps=400)
    dist.barrier()
    dist.destroy_process_group()
    raise_if_deferred_error()


if __name__ == "__main__":
    main()
