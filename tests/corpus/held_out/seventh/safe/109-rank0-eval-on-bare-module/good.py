import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


@torch.no_grad()
def accuracy(net, inputs, labels):
    net.eval()
    hits = (net(inputs).argmax(dim=1) == labels).float().mean().item()
    net.train()
    return hits


def fit(model, opt, epochs):
    best = 0.0
    inputs, labels = torch.randn(32, 6), torch.randint(0, 3, (32,))
    for epoch in range(epochs):
        for _ in range(4):
            opt.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            opt.step()
        box = [None]
        if dist.get_rank() == 0:
            # the inner module: plain tensors, no DDP hooks and no buffer sync
            box[0] = accuracy(model.module, inputs, labels)
        dist.broadcast_object_list(box, src=0)
        best = max(best, box[0])
    return best


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(6, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Linear(16, 3)
    )
    model = DDP(net)
    best = fit(model, torch.optim.SGD(model.parameters(), lr=0.1), epochs=3)
    assert 0.0 <= best <= 1.0
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
