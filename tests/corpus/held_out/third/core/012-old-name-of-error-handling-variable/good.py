import logging
import os
import socket
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist

logger = logging.getLogger(__name__)


@dataclass
class TorchConfig:
    backend: str = "nccl"
    timeout_s: int = 900
    abort_on_error: bool = True


def prepare_environment(config):
    if config.backend == "nccl" and config.abort_on_error:
        if "TORCH_NCCL_BLOCKING_WAIT" not in os.environ:
            os.environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = "1"
            logger.info("a failed collective ends the process")


def join_group(config):
    prepare_environment(config)
    if config.backend == "nccl":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group(config.backend, timeout=timedelta(seconds=config.timeout_s))
    logger.info("%s joined as %d of %d", socket.gethostname(), dist.get_rank(), dist.get_world_size())


def train_func(steps):
    weight = torch.zeros(64, device="cuda")
    for _ in range(steps):
        grad = torch.randn_like(weight)
        dist.all_reduce(grad)
        weight -= 1e-3 * grad
    return weight.norm().item()


def main():
    logging.basicConfig(level=logging.INFO)
    join_group(TorchConfig())
    print(train_func(100))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
