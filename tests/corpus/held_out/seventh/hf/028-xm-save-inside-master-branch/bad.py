import os

import torch
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl


def accuracy(model, loader):
    hits, seen = 0, 0
    model.eval()
    with torch.no_grad():
        for x, y in loader:
            hits += (model(x).argmax(-1) == y).sum().item()
            seen += y.numel()
    model.train()
    hits = xm.mesh_reduce("hits", hits, sum)
    seen = xm.mesh_reduce("seen", seen, sum)
    return hits / seen


def _mp_fn(index, net, make_loaders, out, epochs):
    device = xm.xla_device()
    model, best = net.to(device), 0.0
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    train, valid = (pl.MpDeviceLoader(part, device) for part in make_loaders(xm.get_ordinal()))
    for epoch in range(epochs):
        for x, y in train:
            opt.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            xm.optimizer_step(opt)
        acc = accuracy(model, valid)
        if acc > best:
            best = acc
            if xm.is_master_ordinal():
                os.makedirs(out, exist_ok=True)
                xm.save(model.state_dict(), os.path.join(out, "best.pt"))
