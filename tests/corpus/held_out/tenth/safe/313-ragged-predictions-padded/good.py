import torch
import torch.distributed as dist
import torch.nn.functional as F


def gather_ragged(t):
    world = dist.get_world_size()
    size = torch.tensor([t.shape[0]])
    sizes = [torch.zeros_like(size) for _ in range(world)]
    dist.all_gather(sizes, size)
    sizes = [int(s) for s in sizes]
    widest = max(sizes)
    if widest == 0:
        return t
    if t.shape[0] < widest:
        t = F.pad(t, (0, 0, 0, widest - t.shape[0]))
    outs = [torch.empty_like(t) for _ in range(world)]
    dist.all_gather(outs, t)
    return torch.cat([o[:n] for o, n in zip(outs, sizes)])


def score(preds):
    every = gather_ragged(preds)
    if dist.get_rank() != 0:
        return None
    return (every[:, 0] == every[:, 1]).float().mean().item()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    preds = torch.stack([torch.arange(5 + rank), torch.arange(5 + rank)], dim=1)
    result = score(preds)
    if result is not None:
        assert result == 1.0
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
