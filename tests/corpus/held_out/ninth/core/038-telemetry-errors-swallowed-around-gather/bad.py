import functools
import logging
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

SENSOR = Path("/sys/class/thermal/thermal_zone0/temp")


def harmless(method):
    """Telemetry must never stop the training."""
    @functools.wraps(method)
    def wrapped(*args, **kwargs):
        try:
            return method(*args, **kwargs)
        except Exception as err:
            logging.warning("%s failed: %s", method.__name__, err)
    return wrapped


class Telemetry:
    def read(self):
        return int(SENSOR.read_text()) / 1000

    @harmless
    def report(self, step):
        rows = [None] * dist.get_world_size()
        dist.all_gather_object(rows, self.read())
        if dist.get_rank() == 0:
            print(step, rows)


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    telemetry = Telemetry()
    weight = torch.zeros(64)
    for step in range(50):
        grad = torch.randn(64)
        dist.all_reduce(grad)
        weight -= 0.01 * grad
        if step % 10 == 0:
            telemetry.report(step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
