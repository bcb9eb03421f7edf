"""Ring attention: keys and values travel around the sequence-parallel ring."""
import math
import os

import torch
import torch.distributed as dist


class RingComm:
    def __init__(self):
        self.rank = dist.get_rank()
        self.size = dist.get_world_size()
        self.next = (self.rank + 1) % self.size
        self.prev = (self.rank - 1) % self.size

    def shift(self, tensor):
        tensor = tensor.contiguous()
        incoming = torch.empty_like(tensor)
        dist.send(tensor, dst=self.next)
        dist.recv(incoming, src=self.prev)
        return incoming


def merge(out, lse, block_out, block_lse):
    new_lse = torch.logaddexp(lse, block_lse)
    out = out * (lse - new_lse).exp().unsqueeze(-1)
    out = out + block_out * (block_lse - new_lse).exp().unsqueeze(-1)
    return out, new_lse


def attend(q, k, v):
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
    lse = scores.logsumexp(dim=-1)
    return (scores - lse.unsqueeze(-1)).exp() @ v, lse


@torch.no_grad()
def ring_attention(q, k, v, comm):
    out, lse = attend(q, k, v)
    for _ in range(comm.size - 1):
        kv = comm.shift(torch.stack([k, v]))
        k, v = kv[0], kv[1]
        block_out, block_lse = attend(q, k, v)
        out, lse = merge(out, lse, block_out, block_lse)
    return out


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", local_rank))
    comm = RingComm()
    torch.manual_seed(comm.rank)
    heads, local_len, dim = 16, 4096, 64
    q, k, v = (torch.randn(heads, local_len, dim, device="cuda") for _ in range(3))
    for it in range(10):
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        start.record()
        out = ring_attention(q, k, v, comm)
        end.record()
        torch.cuda.synchronize()
        if comm.rank == 0:
            print(f"iter {it}: {start.elapsed_time(end):.2f} ms, mean {out.mean().item():.5f}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
