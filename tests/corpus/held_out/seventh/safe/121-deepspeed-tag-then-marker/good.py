import argparse
import json
import os

import deepspeed
import torch
import torch.distributed as dist


def keep(engine, folder, step, loss):
    tag = f"global_step{step}"
    engine.save_checkpoint(folder, tag=tag, client_state={"step": step})
    if dist.get_rank() != 0:
        return tag
    with open(os.path.join(folder, tag, "info.json"), "w", encoding="utf-8") as f:
        json.dump({"step": step, "loss": loss}, f)
    return tag


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="ckpt")
    parser.add_argument("--every", type=int, default=5)
    parser.add_argument("--local_rank", type=int, default=0)
    args = parser.parse_args()
    deepspeed.init_distributed()
    net = torch.nn.Linear(16, 16)
    config = {
        "train_micro_batch_size_per_gpu": 4,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}},
        "zero_optimization": {"stage": 2},
    }
    engine, _, _, _ = deepspeed.initialize(
        model=net, model_parameters=net.parameters(), config=config
    )
    for step in range(1, 21):
        loss = engine(torch.randn(4, 16, device=engine.device)).pow(2).mean()
        engine.backward(loss)
        engine.step()
        if step % args.every == 0:
            keep(engine, args.out, step, loss.item())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
