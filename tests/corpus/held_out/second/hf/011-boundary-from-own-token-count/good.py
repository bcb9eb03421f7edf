import argparse

import deepspeed
import torch.distributed as dist


class Packer:
    """Counts real tokens between two updates."""

    def __init__(self, goal):
        self.goal, self.tokens = goal, 0

    def full(self, mask):
        count = mask.sum()
        dist.all_reduce(count)
        self.tokens += int(count)
        if self.tokens < self.goal * dist.get_world_size():
            return False
        self.tokens = 0
        return True


def epoch(engine, loader, packer):
    for batch in loader:
        batch = {k: v.to(engine.device) for k, v in batch.items()}
        boundary = packer.full(batch["attention_mask"])
        engine.set_gradient_accumulation_boundary(is_boundary=boundary)
        loss = engine(**batch).loss
        engine.backward(loss)
        engine.step()


def main(build, data):
    cli = argparse.ArgumentParser()
    cli.add_argument("--tokens", type=int, default=32768)
    cli = deepspeed.add_config_arguments(cli)
    args = cli.parse_args()
    net = build()
    engine, _, loader, _ = deepspeed.initialize(
        args=args, model=net, model_parameters=net.parameters(), training_data=data
    )
    for _ in range(2):
        epoch(engine, loader, Packer(args.tokens))
    engine.save_checkpoint("ckpt")
