import datetime
import json
import logging
import os
import sys
from contextlib import contextmanager

import torch
import torch.distributed as dist
from safetensors.torch import save_file

logger = logging.getLogger("sft")


@contextmanager
def safe_ddp_first():
    """Rank 0 goes first, e.g. to fill the hub cache."""
    if dist.get_rank() != 0:
        dist.barrier()
    try:
        yield
    finally:
        if dist.get_rank() == 0:
            dist.barrier()


def load_model_config(model_dir: str) -> dict:
    with safe_ddp_first():
        with open(os.path.join(model_dir, "config.json")) as f:
            return json.load(f)


def export_weights(state: dict, out: str, shard_size: int = 200) -> None:
    os.makedirs(out, exist_ok=True)
    names = sorted(state)
    for n, start in enumerate(range(0, len(names), shard_size)):
        part = {k: state[k].contiguous() for k in names[start : start + shard_size]}
        save_file(part, os.path.join(out, f"model-{n:05d}.safetensors"))
        logger.info("wrote shard %d", n)


def export_config(model_dir: str, out: str) -> None:
    config = load_model_config(model_dir)
    config["torch_dtype"] = "bfloat16"
    if dist.get_rank() == 0:
        with open(os.path.join(out, "config.json"), "w") as f:
            json.dump(config, f, indent=2)


class SftJob:
    def __init__(self, args, trainer):
        self.args = args
        self.trainer = trainer

    def run(self) -> None:
        self.trainer.train()
        state = self.trainer.full_state_dict()  # collective, filled on rank 0
        if dist.get_rank() != 0:
            dist.destroy_process_group()
            sys.exit(0)
        export_weights(state, self.args.output_dir)
        export_config(self.args.model_dir, self.args.output_dir)
        logger.info("saved to %s", self.args.output_dir)
        dist.destroy_process_group()


def main(args, build_trainer) -> int:
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl", timeout=datetime.timedelta(hours=2))
    SftJob(args, build_trainer(args)).run()
    return 0
