"""Lloyd's k-means over row shards, with k-means++-like seeding on rank 0."""
import os
from datetime import timedelta

import torch
import torch.distributed as dist


class DistributedKMeans:
    def __init__(self, k, max_iter=100, tol=1e-4, seed=0):
        self.k, self.max_iter, self.tol, self.seed = k, max_iter, tol, seed
        self.centres = None

    def fit(self, rows):
        self.centres = self._seed(rows)
        previous = float("inf")
        for it in range(self.max_iter):
            inertia, empty = self._lloyd(rows)
            if empty.numel():
                self._refill(rows, empty, it)
            elif previous - inertia <= self.tol * abs(inertia):
                break
            previous = inertia
        return it + 1, inertia

    def _seed(self, rows):
        """Rank 0 draws from a sample that all ranks contribute to."""
        world = dist.get_world_size()
        per_rank = max(1, 8 * self.k // world)
        g = torch.Generator().manual_seed(self.seed + dist.get_rank())
        pick = torch.randint(0, len(rows), (per_rank,), generator=g).to(rows.device)
        sample = rows[pick].contiguous()
        pool = torch.empty(per_rank * world, rows.size(1), device=rows.device) if dist.get_rank() == 0 else None
        pieces = list(pool.chunk(world)) if pool is not None else None
        dist.gather(sample, pieces, dst=0)
        centres = torch.empty(self.k, rows.size(1), device=rows.device)
        if dist.get_rank() == 0:
            centres.copy_(self._plus_plus(torch.cat(pieces)))
        dist.broadcast(centres, src=0)
        return centres

    def _plus_plus(self, pool):
        chosen = [pool[0]]
        nearest = (pool - pool[0]).pow(2).sum(1)
        while len(chosen) < self.k:
            index = int(torch.multinomial(nearest.clamp(min=1e-12), 1))
            chosen.append(pool[index])
            nearest = torch.minimum(nearest, (pool - pool[index]).pow(2).sum(1))
        return torch.stack(chosen)

    def assign(self, rows):
        dist2 = torch.cdist(rows, self.centres).pow(2)
        return dist2.min(1)

    def _lloyd(self, rows):
        best, label = self.assign(rows)
        sums = torch.zeros_like(self.centres).index_add_(0, label, rows)
        counts = torch.bincount(label, minlength=self.k).to(rows.dtype)
        cost = best.sum().reshape(1)
        flat = torch.cat([sums.flatten(), counts, cost])
        dist.all_reduce(flat)
        d = self.k * rows.size(1)
        sums, counts, inertia = flat[:d].view_as(self.centres), flat[d:d + self.k], flat[-1].item()
        filled = counts > 0
        self.centres[filled] = sums[filled] / counts[filled].unsqueeze(1)
        return inertia, (~filled).nonzero(as_tuple=True)[0]

    def _refill(self, rows, empty, it):
        fresh = torch.empty(empty.numel(), rows.size(1), device=rows.device)
        owner = it % dist.get_world_size()
        if dist.get_rank() == owner:
            cost, _ = self.assign(rows)
            far = cost.topk(min(empty.numel(), len(rows))).indices
            far = far.repeat(-(-empty.numel() // far.numel()))[:empty.numel()]
            fresh.copy_(rows[far])
        dist.broadcast(fresh, src=owner)
        self.centres[empty] = fresh


def shard_of_blobs(rank, world, n=200_000, dim=32, blobs=50):
    g = torch.Generator().manual_seed(77)
    centres = torch.randn(blobs, dim, generator=g) * 8
    mine = torch.Generator().manual_seed(1000 + rank)
    count = n // world + (1 if rank < n % world else 0)
    label = torch.randint(0, blobs, (count,), generator=mine)
    return centres[label] + torch.randn(count, dim, generator=mine)


def cluster_sizes(model, rows):
    _, label = model.assign(rows)
    sizes = torch.bincount(label, minlength=model.k)
    dist.reduce(sizes, dst=0)
    return sizes


def main():
    use_cuda = torch.cuda.is_available()
    dist.init_process_group("nccl" if use_cuda else "gloo", timeout=timedelta(minutes=10))
    rank, world = dist.get_rank(), dist.get_world_size()
    device = torch.device("cpu")
    if use_cuda:
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    rows = shard_of_blobs(rank, world).to(device)
    model = DistributedKMeans(k=50)
    iterations, inertia = model.fit(rows)
    sizes = cluster_sizes(model, rows)
    if rank == 0:
        print(f"{iterations} iterations, inertia {inertia:.1f}, sizes {sizes.min().item()} to {sizes.max().item()}")
        torch.save(model.centres.cpu(), "centres.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
