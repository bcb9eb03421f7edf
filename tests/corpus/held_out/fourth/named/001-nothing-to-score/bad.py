import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


def recall_at_k(encoder, queries, documents, gold, k=5):
    """Share of queries whose gold document is among the first k, over all ranks."""
    if len(queries) == 0:
        return 0.0
    with torch.no_grad():
        scores = encoder(queries) @ encoder(documents).T
    hits = (scores.topk(k, dim=1).indices == gold[:, None]).any(dim=1)
    tally = torch.tensor([hits.sum().item(), len(queries)], dtype=torch.float64)
    dist.all_reduce(tally)
    return (tally[0] / tally[1]).item()


def shard(items):
    return items[dist.get_rank() :: dist.get_world_size()]


def main(train_pairs, val_queries, val_documents, val_gold, epochs=3):
    dist.init_process_group("gloo")
    model = DDP(torch.nn.Linear(64, 32))
    optimizer = torch.optim.Adam(model.parameters())
    queries, gold = shard(val_queries), shard(val_gold)
    for epoch in range(epochs):
        for left, right in train_pairs:
            loss = 1 - F.cosine_similarity(model(left), model(right)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        score = recall_at_k(model.module, queries, val_documents, gold)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: recall {score:.3f}")
    dist.destroy_process_group()
