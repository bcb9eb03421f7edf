import os
from datetime import timedelta

import spmdguard as sg
import torch
import torch.distributed as dist


def paint(image: torch.Tensor, index: int) -> None:
    with open(os.path.join("frames", f"{index:05d}.ppm"), "wb") as out:
        out.write(b"P6 4 4 255\n" + bytes(image.clamp(0, 255).byte().flatten().tolist()))


def animate(frames: int) -> None:
    image = torch.zeros(4, 4, 3)
    for index in range(frames):
        light = torch.rand(4, 4, 3) * 40
        dist.all_reduce(light)
        image = 0.8 * image + light
        if sg.is_main_process():
            sg.try_or_defer(paint, image, index)
        sg.sync_should_stop(sg.has_deferred_error())


if __name__ == "__main__":
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    animate(30)
    dist.barrier()
    dist.destroy_process_group()
    sg.raise_if_deferred_error()
