import functools

import ignite.distributed as idist
import torch
import torch.distributed as dist
from ignite.engine import Engine, Events


def on_rank(which=0, sync=False):
    def wrap(fn):
        @functools.wraps(fn)
        def inner(*args, **kwargs):
            result = None
            if idist.get_rank() == which:
                result = fn(*args, **kwargs)
            if sync and dist.is_initialized():
                dist.barrier()
            return result
        return inner
    return wrap


@on_rank(0)
def report(engine, logger):
    logger.info("iter %d loss %.4f", engine.state.iteration, engine.state.output)


@on_rank(0, sync=True)
def store(model, path):
    torch.save(model.state_dict(), path)


def training(local_rank, cfg, logger):
    model = idist.auto_model(cfg.make_model())
    optim = idist.auto_optim(torch.optim.SGD(model.parameters(), lr=cfg.lr))
    loader = idist.auto_dataloader(cfg.dataset, batch_size=cfg.batch, shuffle=True, drop_last=True)
    device = idist.device()

    def step(engine, batch):
        x, y = (t.to(device) for t in batch)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optim.step()
        optim.zero_grad()
        return loss.item()

    trainer = Engine(step)
    trainer.add_event_handler(Events.ITERATION_COMPLETED(every=50), report, logger)

    @trainer.on(Events.EPOCH_COMPLETED)
    def _(engine):
        mean = idist.all_reduce(engine.state.output) / idist.get_world_size()
        raw = model.module if hasattr(model, "module") else model
        store(raw, f"{cfg.out}/{engine.state.epoch}_{mean:.3f}.pt")

    trainer.run(loader, max_epochs=cfg.epochs)


def main(cfg, logger):
    with idist.Parallel(backend="nccl", nproc_per_node=cfg.gpus) as parallel:
        parallel.run(training, cfg, logger)
