import torch
import torch.distributed as dist


def predict(rank, world, n=10):
    return {i: (i * 7) % 3 for i in range(rank, n, world)}


def merge(parts):
    merged = {}
    for part in parts:
        merged.update(part)
    return merged


def evaluate(truth):
    rank, world = dist.get_rank(), dist.get_world_size()
    mine = predict(rank, world, len(truth))
    parts = [None] * world if rank == 0 else None
    dist.gather_object(mine, parts, dst=0)
    if parts is None:
        return None
    merged = merge(parts)
    hits = sum(merged[i] == t for i, t in enumerate(truth))
    return hits / len(truth)


def main():
    dist.init_process_group("gloo")
    truth = [(i * 7) % 3 for i in range(10)]
    accuracy = evaluate(truth)
    box = torch.tensor([-1.0 if accuracy is None else accuracy])
    dist.broadcast(box, src=0)
    assert box.item() == 1.0
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
