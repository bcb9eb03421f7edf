import torch
import torch.distributed as dist


def gather(candidates, k):
    return sorted(candidates, key=lambda c: -c[1])[:k]


def reciprocal_rank(relevant, hits):
    for rank, (doc, _) in enumerate(hits, start=1):
        if doc in relevant:
            return 1.0 / rank
    return 0.0


def evaluate(queries, k=10):
    total = torch.zeros(2, dtype=torch.float64)
    for relevant, candidates in queries:
        hits = gather(candidates, k)
        if not hits:
            continue
        rr = reciprocal_rank(relevant, hits)
        total += torch.tensor([rr, 1.0], dtype=torch.float64)
    dist.all_reduce(total)
    return (total[0] / total[1].clamp(min=1)).item()


def main():
    dist.init_process_group("gloo")
    queries = [
        ({"a"}, [("b", 0.9), ("a", 0.8)]),
        ({"c"}, []),
    ]
    if dist.get_rank() == 0:
        queries.append(({"z"}, [("z", 0.7)]))
    mrr = evaluate(queries)
    assert 0.5 <= mrr <= 1.0
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
