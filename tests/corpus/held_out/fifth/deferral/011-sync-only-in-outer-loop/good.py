from pathlib import Path

import spmdguard
import torch
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def loader_for(n=65536, batch=32):
    data = TensorDataset(torch.randn(n, 12), torch.randint(0, 2, (n,)))
    sampler = DistributedSampler(data, drop_last=True)
    return DataLoader(data, batch_size=batch, sampler=sampler, drop_last=True), sampler


@spmdguard.collective
def fit_batch(model, opt, x, y):
    logits = model(x)
    loss = torch.nn.functional.cross_entropy(logits, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return logits.detach()


@spmdguard.rank_local
def dump_logits(root, epoch, i, logits):
    folder = Path(root) / f"e{epoch}"
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(logits, folder / f"{torch.distributed.get_rank()}-{i}.pt")


def main(epochs=20):
    spmdguard.init_process_group("gloo")
    torch.manual_seed(0)
    loader, sampler = loader_for()
    model = DDP(torch.nn.Linear(12, 2))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    stop = False
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for i, (x, y) in enumerate(loader):
            logits = fit_batch(model, opt, x, y)
            dump_logits("logits", epoch, i, logits)
            stop = spmdguard.sync_should_stop()
            if stop:
                break
        if stop:
            break
    spmdguard.destroy_process_group()
    spmdguard.raise_if_deferred_error()


if __name__ == "__main__":
    main()
