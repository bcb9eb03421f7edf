import evaluate
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def make_metric(name, run_id):
    return evaluate.load(
        name,
        num_process=dist.get_world_size(),
        process_id=dist.get_rank(),
        experiment_id=run_id,
    )


@torch.no_grad()
def score(model, loader, metric, device):
    model.eval()
    guesses, truths = [], []
    for text, label in loader:
        guesses += model(text.to(device)).argmax(-1).tolist()
        truths += label.tolist()
    model.train()
    # every process hands in its part; only process 0 gets a result back
    return metric.compute(predictions=guesses, references=truths)


def train(net, opt, train_loader, val_loader, run_id, device, epochs=3):
    model = DDP(net.to(device), device_ids=[device.index])
    metric = make_metric("accuracy", run_id)
    for epoch in range(epochs):
        for text, label in train_loader:
            loss = torch.nn.functional.cross_entropy(model(text.to(device)), label.to(device))
            loss.backward()
            opt.step()
            opt.zero_grad()
        result = score(net, val_loader, metric, device)
        if dist.get_rank() == 0:
            print(epoch, result)
