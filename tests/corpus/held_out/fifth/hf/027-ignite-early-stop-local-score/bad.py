from argparse import ArgumentParser

import ignite.distributed as idist
import torch
from ignite.engine import Engine, Events
from ignite.handlers import Checkpoint, DiskSaver, EarlyStopping
from torch import nn

from audio import make_datasets, make_net


def create_evaluator(model):
    def infer(engine, batch):
        model.eval()
        x, y = (t.to(idist.device(), non_blocking=True) for t in batch)
        with torch.no_grad():
            return nn.functional.cross_entropy(model(x), y).detach()

    evaluator = Engine(infer)

    @evaluator.on(Events.STARTED)
    def reset(engine):
        engine.state.total, engine.state.batches = 0.0, 0

    @evaluator.on(Events.ITERATION_COMPLETED)
    def add(engine):
        engine.state.total += engine.state.output.item()
        engine.state.batches += 1

    @evaluator.on(Events.COMPLETED)
    def finish(engine):
        engine.state.val_loss = engine.state.total / max(engine.state.batches, 1)

    return evaluator


def training(local_rank, config):
    train_set, val_set = make_datasets(config["root"])
    train_loader = idist.auto_dataloader(train_set, batch_size=config["batch_size"], shuffle=True)
    val_loader = idist.auto_dataloader(val_set, batch_size=config["batch_size"])
    model = idist.auto_model(make_net(config["classes"]))
    optimizer = idist.auto_optim(torch.optim.SGD(model.parameters(), lr=config["lr"], momentum=0.9))

    def update(engine, batch):
        model.train()
        x, y = (t.to(idist.device(), non_blocking=True) for t in batch)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    trainer = Engine(update)
    evaluator = create_evaluator(model)
    trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda _: evaluator.run(val_loader))
    stopper = EarlyStopping(config["patience"], lambda e: -e.state.val_loss, trainer)
    evaluator.add_event_handler(Events.COMPLETED, stopper)
    saver = Checkpoint({"model": model}, DiskSaver(config["out"], require_empty=False), n_saved=2)
    trainer.add_event_handler(Events.EPOCH_COMPLETED, saver)
    trainer.run(train_loader, max_epochs=config["epochs"])


if __name__ == "__main__":
    ap = ArgumentParser()
    ap.add_argument("--root", default="/data/audio")
    ap.add_argument("--nproc", type=int, default=4)
    a = ap.parse_args()
    cfg = dict(root=a.root, batch_size=64, classes=35, lr=0.05, patience=5, epochs=100, out="runs/audio")
    with idist.Parallel(backend="nccl", nproc_per_node=a.nproc) as parallel:
        parallel.run(training, cfg)
