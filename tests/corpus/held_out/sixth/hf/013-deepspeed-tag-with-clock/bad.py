import argparse
from datetime import datetime
from pathlib import Path

import deepspeed
import torch
from deepspeed import comm as dist
from transformers import AutoModelForMaskedLM

from pretrain.data import masked_lm_loader


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="bert-large-uncased")
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", type=Path, default=Path("ckpt"))
    parser.add_argument("--save_every", type=int, default=1000)
    parser.add_argument("--total_steps", type=int, default=100_000)
    parser.add_argument("--local_rank", type=int, default=-1)
    return deepspeed.add_config_arguments(parser).parse_args()


def checkpoint_tag(step: int) -> str:
    tag = f"step{step:07d}-{datetime.now():%m%d-%H%M%S}"
    return tag


def main():
    args = parse()
    deepspeed.init_distributed()
    model = AutoModelForMaskedLM.from_pretrained(args.model)
    engine, _, _, _ = deepspeed.initialize(args=args, model=model, model_parameters=model.parameters())
    loader = masked_lm_loader(args.data, engine.train_micro_batch_size_per_gpu(), dist.get_rank(), dist.get_world_size())
    batches = iter(loader)
    running = torch.zeros((), device=engine.device)
    for step in range(1, args.total_steps + 1):
        batch = {k: v.to(engine.device) for k, v in next(batches).items()}
        loss = engine(**batch).loss
        engine.backward(loss)
        engine.step()
        running += loss.detach()
        if step % 100 == 0:
            if dist.get_rank() == 0:
                print(f"step {step} loss {running.item() / 100:.4f}", flush=True)
            running.zero_()
        if step % args.save_every == 0:
            tag = checkpoint_tag(step)
            engine.save_checkpoint(str(args.out), tag=tag, client_state={"step": step})


if __name__ == "__main__":
    main()
