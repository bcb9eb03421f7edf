import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def predict(model, batches):
    rows = []
    with torch.no_grad():
        for keys, x in batches:
            rows += list(zip(keys, model(x).squeeze(1).tolist()))
    return rows


def collect(rows):
    everything = [None] * dist.get_world_size()
    dist.all_gather_object(everything, rows)
    return dict(pair for part in everything for pair in part)


def train(model, batches, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03, weight_decay=1e-4)
    for _ in range(epochs):
        for _, x in batches:
            loss = (model(x).squeeze(1) - x.mean(dim=1)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def main(batches, test_batches, out="predictions.pt"):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = DDP(torch.nn.Linear(9, 1))
    train(model, batches, epochs=3)
    rows = predict(model.module, test_batches)
    if rank != 0:
        dist.destroy_process_group()
        return
    table = collect(rows)
    dist.destroy_process_group()
    torch.save(table, out)
    print(len(table), "rows")
