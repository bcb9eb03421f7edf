import torch
from lightning.fabric import Fabric
from torch.utils.data import DataLoader


def open_corpus(fabric, corpus_cls, root):
    if fabric.global_rank == 0:
        corpus_cls.fetch(root)
    fabric.barrier()
    return corpus_cls(root)


def run(net, corpus_cls, root, epochs):
    fabric = Fabric(accelerator="cuda", devices=2, strategy="ddp")
    fabric.launch()
    loader = DataLoader(open_corpus(fabric, corpus_cls, root), batch_size=16, shuffle=True)
    model, opt = fabric.setup(net, torch.optim.AdamW(net.parameters(), lr=2e-4))
    loader = fabric.setup_dataloaders(loader)
    for _ in range(epochs):
        for x, y in loader:
            opt.zero_grad()
            fabric.backward(torch.nn.functional.cross_entropy(model(x), y))
            opt.step()
    fabric.save("final.ckpt", {"model": model, "opt": opt})
