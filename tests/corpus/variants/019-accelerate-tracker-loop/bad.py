import torch
from accelerate import Accelerator
from spmdguard import deferring, has_deferred_error, raise_if_deferred_error, sync_should_stop
from torch.utils.data import DataLoader, TensorDataset


def train_epoch(accelerator, model, opt, loader):
    for number, (rows, labels) in enumerate(loader):
        loss = torch.nn.functional.cross_entropy(model(rows), labels)
        accelerator.backward(loss)
        opt.step()
        opt.zero_grad()
        if number % 20 == 0:
            with deferring("tracker"):
                accelerator.log({"loss": loss.item()}, step=number)


def main():
    accelerator = Accelerator(log_with="tensorboard", project_dir="runs")
    with deferring("tracker start"):
        accelerator.init_trackers("demo")
    model = torch.nn.Linear(10, 4)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    data = TensorDataset(torch.randn(512, 10), torch.randint(0, 4, (512,)))
    model, opt, loader = accelerator.prepare(model, opt, DataLoader(data, batch_size=16, drop_last=True))
    train_epoch(accelerator, model, opt, loader)
    sync_should_stop(has_deferred_error())
    accelerator.end_training()
    raise_if_deferred_error()


if __name__ == "__main__":
    main()
