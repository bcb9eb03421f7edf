import torch
import torch.distributed as dist
from torchmetrics import MetricCollection
from torchmetrics.classification import MulticlassAccuracy, MulticlassF1Score


def evaluate(model, batches, metrics):
    model.eval()
    with torch.inference_mode():
        for x, y in batches:
            metrics.update(model(x), y)
    values = {k: v.item() for k, v in metrics.compute().items()}
    metrics.reset()
    return values


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    gen = torch.Generator().manual_seed(rank)
    batches = [
        (torch.randn(8, 6, generator=gen), torch.randint(0, 3, (8,), generator=gen))
        for _ in range(3 + rank)
    ]
    metrics = MetricCollection(
        {"acc": MulticlassAccuracy(num_classes=3), "f1": MulticlassF1Score(num_classes=3)}
    )
    best = 0.0
    for epoch in range(2):
        values = evaluate(torch.nn.Linear(6, 3), batches, metrics)
        if values["acc"] > best:
            best = values["acc"]
            dist.barrier()
            if rank == 0:
                print(f"epoch {epoch}: new best {values}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
