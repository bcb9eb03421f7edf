from functools import wraps

import ignite.distributed as idist
import torch
from ignite.engine import Engine, Events
from ignite.metrics import Loss


def only_rank(rank: int = 0, wait: bool = False):
    def decorate(func):
        @wraps(func)
        def wrapper(*args, **kwargs):
            ret = None
            if idist.get_rank() == rank:
                ret = func(*args, **kwargs)
            if wait:
                idist.barrier()
            return ret

        return wrapper

    return decorate


def get_data():
    if idist.get_local_rank() > 0:
        idist.barrier()
    path = "/tmp/ignite-data.pt"
    try:
        data = torch.load(path)
    except FileNotFoundError:
        data = (torch.randn(4096, 10), torch.randn(4096, 1))
        torch.save(data, path)
    if idist.get_local_rank() == 0:
        idist.barrier()
    return torch.utils.data.TensorDataset(*data)


def training(local_rank, config):
    device = idist.device()
    loader = idist.auto_dataloader(get_data(), batch_size=config["batch"], shuffle=True, drop_last=True)
    model = idist.auto_model(torch.nn.Linear(10, 1))
    opt = idist.auto_optim(torch.optim.SGD(model.parameters(), lr=config["lr"]))

    def step(engine, batch):
        x, y = (t.to(device) for t in batch)
        pred = model(x)
        loss = torch.nn.functional.mse_loss(pred, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return pred.detach(), y

    trainer = Engine(step)
    Loss(torch.nn.functional.mse_loss).attach(trainer, "loss")

    @trainer.on(Events.EPOCH_COMPLETED)
    @only_rank(0, wait=True)
    def save(engine):
        torch.save(model.state_dict(), f"/tmp/epoch{engine.state.epoch}.pt")

    @trainer.on(Events.EPOCH_COMPLETED)
    @only_rank(0)
    def report(engine):
        print(engine.state.epoch, engine.state.metrics["loss"])

    trainer.run(loader, max_epochs=config["epochs"])


if __name__ == "__main__":
    with idist.Parallel(backend="nccl", nproc_per_node=4) as parallel:
        parallel.run(training, {"batch": 64, "lr": 0.01, "epochs": 3})
