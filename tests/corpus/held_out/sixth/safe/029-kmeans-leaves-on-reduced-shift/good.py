import torch
import torch.distributed as dist


@torch.no_grad()
def nearest(x, centres, chunk=8192):
    return torch.cat([torch.cdist(part, centres).argmin(1) for part in x.split(chunk)])


@torch.no_grad()
def distributed_kmeans(x, k, iters=50, tol=1e-4, seed=7):
    """x: local rows, another number on each rank (at least one)."""
    dim = x.size(1)
    centres = torch.empty(k, dim, device=x.device)
    if dist.get_rank() == 0:
        gen = torch.Generator().manual_seed(seed)
        pick = torch.randint(x.size(0), (k,), generator=gen)
        centres.copy_(x[pick.to(x.device)])
    dist.broadcast(centres, 0)
    for it in range(iters):
        label = nearest(x, centres)
        sums = torch.zeros(k, dim, device=x.device).index_add_(0, label, x)
        counts = torch.bincount(label, minlength=k).float()
        dist.all_reduce(sums)
        dist.all_reduce(counts)
        fresh = sums / counts.clamp(min=1).unsqueeze(1)
        empty = counts == 0
        if empty.any():
            donors = torch.empty(int(empty.sum()), dim, device=x.device)
            if dist.get_rank() == 0:
                donors.copy_(x[torch.randint(x.size(0), (donors.size(0),), device=x.device)])
            dist.broadcast(donors, 0)
            fresh[empty] = donors
        shift = (fresh - centres).norm() / centres.norm().clamp(min=1e-12)
        dist.broadcast(shift, 0)
        centres = fresh
        if shift.item() < tol:
            break
    return centres, nearest(x, centres)


def pseudo_labels(encoder, loader, k):
    feats = []
    encoder.eval()
    with torch.no_grad():
        for images, _ in loader:
            feats.append(torch.nn.functional.normalize(encoder(images.cuda()), dim=1))
    encoder.train()
    centres, labels = distributed_kmeans(torch.cat(feats), k)
    dist.barrier()
    return centres, labels
