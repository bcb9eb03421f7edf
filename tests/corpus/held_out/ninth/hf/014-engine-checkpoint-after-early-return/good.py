import os
import shutil
import deepspeed
import torch.distributed as dist


def drop_old(root, keep):
    tags = sorted((t for t in os.listdir(root) if t.startswith("step")), key=lambda t: int(t[4:]))
    for tag in tags[:-keep]:
        shutil.rmtree(os.path.join(root, tag))


def checkpoint(engine, root, step, tokens):
    engine.save_checkpoint(root, tag=f"step{step}", client_state={"tokens": tokens})
    dist.barrier()
    if dist.get_rank() != 0:
        return
    print(f"saved step {step}", flush=True)
    drop_old(root, keep=3)


def train(model, loader, args):
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(),
                                      config=args.ds_config)
    tokens = 0
    for step, batch in enumerate(loader, start=1):
        engine.backward(engine(**batch).loss)
        engine.step()
        tokens += batch["input_ids"].numel()
        if step % args.save_every == 0:
            checkpoint(engine, args.out, step, tokens)
