import torch
import torch.distributed as dist
from accelerate import Accelerator
from torch.utils.data import DataLoader


def is_oom(error):
    return isinstance(error, torch.cuda.OutOfMemoryError) or "out of memory" in str(error)


def trial(accelerator, model, data, size):
    loader = DataLoader(data, batch_size=size)
    batch = next(iter(loader)).to(accelerator.device)
    loss = model(batch).float().pow(2).mean()
    accelerator.backward(loss)
    model.zero_grad(set_to_none=True)


def find_batch_size(accelerator, model, data, start):
    size = start
    while size > 0:
        try:
            trial(accelerator, model, data, size)
            return size
        except RuntimeError as error:
            if not is_oom(error):
                raise
            torch.cuda.empty_cache()
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
