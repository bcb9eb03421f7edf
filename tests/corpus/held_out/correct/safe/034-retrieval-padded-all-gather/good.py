"""Dense retrieval evaluation with feature shards of different lengths."""
import os
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

DIM = 128


def gather_sizes(n, device):
    mine = torch.tensor([n], device=device)
    sizes = [torch.zeros_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(sizes, mine)
    return [int(s.item()) for s in sizes]


def all_gather_rows(rows):
    """Concatenate rows of all ranks, whose first dimensions may differ (or be zero)."""
    sizes = gather_sizes(rows.shape[0], rows.device)
    longest = max(sizes)
    if longest == 0:
        return rows
    padded = rows.new_zeros((longest, *rows.shape[1:]))
    padded[:rows.shape[0]] = rows
    slots = [torch.empty_like(padded) for _ in sizes]
    dist.all_gather(slots, padded)
    return torch.cat([slot[:n] for slot, n in zip(slots, sizes)])


class TwoTower(nn.Module):
    def __init__(self, vocab=30000):
        super().__init__()
        self.query = nn.EmbeddingBag(vocab, DIM)
        self.passage = nn.EmbeddingBag(vocab, DIM)

    def encode(self, tower, docs, device):
        if not docs:
            return torch.zeros(0, DIM, device=device)
        flat = torch.cat(docs).to(device)
        offsets = torch.tensor([0] + [len(d) for d in docs[:-1]], device=device).cumsum(0)
        return F.normalize(tower(flat, offsets), dim=-1)


def shard(items, rank, world):
    size = -(-len(items) // world)
    return items[rank * size:(rank + 1) * size]


def make_corpus(n, seed):
    g = torch.Generator().manual_seed(seed)
    return [torch.randint(0, 30000, (int(torch.randint(5, 60, (1,), generator=g)),), generator=g) for _ in range(n)]


@torch.no_grad()
def encode_all(model, tower, docs, device, chunk=512):
    parts = [model.encode(tower, docs[i:i + chunk], device) for i in range(0, len(docs), chunk)]
    return torch.cat(parts) if parts else torch.zeros(0, DIM, device=device)


@torch.no_grad()
def recall_at(k, queries, query_ids, passages, chunk=256):
    hits = torch.zeros(2, device=passages.device)
    for i in range(0, len(queries), chunk):
        top = (queries[i:i + chunk] @ passages.T).topk(min(k, len(passages)), dim=1).indices
        hits[0] += (top == query_ids[i:i + chunk, None]).any(1).sum()
        hits[1] += len(top)
    dist.all_reduce(hits)
    return (hits[0] / hits[1].clamp(min=1)).item()


def main():
    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", timeout=timedelta(minutes=20))
    rank, world = dist.get_rank(), dist.get_world_size()

    torch.manual_seed(0)
    model = TwoTower().to(device).eval()
    weights = os.environ.get("WEIGHTS")
    if weights:
        model.load_state_dict(torch.load(weights, map_location=device))

    passages = make_corpus(10_001, seed=1)
    queries = [p[:10] for p in passages[:997]]
    positions = list(range(len(queries)))

    passage_matrix = all_gather_rows(encode_all(model, model.passage, shard(passages, rank, world), device))
    assert len(passage_matrix) == len(passages)
    my_queries = encode_all(model, model.query, shard(queries, rank, world), device)
    my_ids = torch.tensor(shard(positions, rank, world), dtype=torch.long, device=device)

    for k in (1, 10, 100):
        value = recall_at(k, my_queries, my_ids, passage_matrix)
        if rank == 0:
            print(f"recall@{k}: {value:.4f}")

    # hard negatives: the best wrong passage of each query, wanted whole on every rank
    if len(my_queries) > 0:
        sims = my_queries @ passage_matrix.T
        sims[torch.arange(len(my_ids), device=device), my_ids] = -2
        negatives = sims.argmax(1)
    else:
        negatives = torch.zeros(0, dtype=torch.long, device=device)
    everyone = all_gather_rows(negatives)
    if rank == 0:
        torch.save(everyone.cpu(), "hard_negatives.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
