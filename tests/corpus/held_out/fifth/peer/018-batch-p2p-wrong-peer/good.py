import torch
import torch.distributed as dist
from torch.distributed import P2POp, batch_isend_irecv


class RingPass:
    def __init__(self):
        self.rank = dist.get_rank()
        self.size = dist.get_world_size()

    def neighbours(self):
        right = (self.rank + 1) % self.size
        left = (self.rank - 1 + self.size) % self.size
        return left, right

    def shift(self, *tensors):
        left, right = self.neighbours()
        arrivals = [torch.empty_like(t) for t in tensors]
        ops = []
        for mine, other in zip(tensors, arrivals):
            ops.append(P2POp(dist.isend, mine.contiguous(), right))
            ops.append(P2POp(dist.irecv, other, left))
        for req in batch_isend_irecv(ops):
            req.wait()
        return arrivals


def ring_attention(q, k, v, ring):
    out = torch.zeros_like(q)
    norm = torch.zeros(*q.shape[:-1], 1, device=q.device)
    for hop in range(ring.size):
        weight = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).exp()
        out += weight @ v
        norm += weight.sum(-1, keepdim=True)
        if hop + 1 < ring.size:
            k, v = ring.shift(k, v)
    return out / norm


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    q, k, v = (torch.randn(4, 128, 64, device="cuda") for _ in range(3))
    print(ring_attention(q, k, v, RingPass()).shape)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
