import torch
from lightning.fabric import Fabric
from lightning.fabric.utilities.rank_zero import rank_zero_only


@rank_zero_only
def show(epoch: int, mean: float) -> None:
    print(f"epoch {epoch}: {mean:.4f}")


def summarise(fabric: Fabric, epoch: int, losses: list) -> None:
    mean = fabric.all_reduce(torch.stack(losses).mean(), reduce_op="mean")
    show(epoch, mean.item())


def run_epoch(fabric, model, optimizer, loader):
    losses = []
    for x, y in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        fabric.backward(loss)
        optimizer.step()
        losses.append(loss.detach())
    return losses


def main(net, dataset, epochs=4):
    fabric = Fabric(accelerator="auto", devices=2, strategy="ddp")
    fabric.launch()
    fabric.seed_everything(11)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    model, optimizer = fabric.setup(net, optimizer)
    loader = fabric.setup_dataloaders(torch.utils.data.DataLoader(dataset, batch_size=16))
    for epoch in range(epochs):
        losses = run_epoch(fabric, model, optimizer, loader)
        summarise(fabric, epoch, losses)
