import torch
from accelerate import Accelerator
from spmdguard import has_deferred_error, raise_if_deferred_error, rank_local, sync_should_stop
from torch.utils.data import DataLoader, TensorDataset


@rank_local(only="main")
def sketch(step, weight):
    with open("sketch.txt", "a") as out:
        out.write(f"{step}: {weight.mean().item():.5f}\n")


def main():
    accelerator = Accelerator()
    model = torch.nn.Linear(6, 2)
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    data = TensorDataset(torch.randn(256, 6), torch.randint(0, 2, (256,)))
    model, opt, loader = accelerator.prepare(model, opt, DataLoader(data, batch_size=16, drop_last=True))
    for step, (rows, labels) in enumerate(loader):
        accelerator.backward(torch.nn.functional.cross_entropy(model(rows), labels))
        opt.step()
        opt.zero_grad()
        sketch(step, accelerator.unwrap_model(model).weight)
        if sync_should_stop(has_deferred_error()):
            break
    accelerator.wait_for_everyone()
    accelerator.end_training()
    raise_if_deferred_error()


if __name__ == "__main__":
    main()
