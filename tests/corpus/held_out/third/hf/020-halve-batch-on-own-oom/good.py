import torch
import torch.distributed as dist
from accelerate import Accelerator
from torch.utils.data import DataLoader


def is_oom(error):
    return isinstance(error, torch.cuda.OutOfMemoryError) or "out of memory" in str(error)


def trial(accelerator, model, data, size):
    inner = accelerator.unwrap_model(model)
    loader = DataLoader(data, batch_size=size)
    batch = next(iter(loader)).to(accelerator.device)
    loss = inner(batch).float().pow(2).mean()
    loss.backward()
    model.zero_grad(set_to_none=True)


def find_batch_size(accelerator, model, data, start):
    size = start
    while size > 0:
        fits = torch.ones(1, device=accelerator.device)
        try:
            trial(accelerator, model, data, size)
        except RuntimeError as error:
            if not is_oom(error):
                raise
            torch.cuda.empty_cache()
            fits.zero_()
        dist.all_reduce(fits, op=dist.ReduceOp.MIN)
        if fits.item():
            return size
        size //= 2
    raise RuntimeError("not even one sample fits")


def main(model, data, args):
    accelerator = Accelerator()
    model = accelerator.prepare(model)
    size = find_batch_size(accelerator, model, data, args.start)
    loader = accelerator.prepare(DataLoader(data, batch_size=size, shuffle=True))
    opt = accelerator.prepare(torch.optim.AdamW(model.parameters(), lr=args.lr))
    for batch in loader:
        accelerator.backward(model(batch).float().pow(2).mean())
        opt.step()
        opt.zero_grad()
    if dist.is_initialized():
        dist.destroy_process_group()
