import os
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp


@torch.no_grad()
def validate(model, loader):
    model.eval()
    total, n = 0.0, 0
    for batch in loader:
        total += model(**batch).loss.item()
        n += 1
    model.train()
    return total / n


def fit(model, opt, loader, val_loader, out, every):  # model went through fully_shard()
    for step, batch in enumerate(loader, start=1):
        model(**batch).loss.backward()
        opt.step()
        opt.zero_grad()
        if step % every == 0:
            val_loss = validate(model, val_loader)
            name = f"step={step}-val_loss={val_loss:.2f}"
            dcp.save({"model": model.state_dict()}, checkpoint_id=os.path.join(out, name))
            if dist.get_rank() == 0:
                print("saved", name)
