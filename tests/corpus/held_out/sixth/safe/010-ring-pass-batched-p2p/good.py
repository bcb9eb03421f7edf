import torch
import torch.distributed as dist
import torch.nn.functional as F


class Ring:
    def __init__(self, group=None):
        self.group = group
        self.rank = dist.get_rank(group)
        self.size = dist.get_world_size(group)
        ranks = dist.get_process_group_ranks(group or dist.group.WORLD)
        self.right = ranks[(self.rank + 1) % self.size]
        self.left = ranks[(self.rank - 1) % self.size]
        self._work = None

    def start(self, *tensors):
        outs = [torch.empty_like(t) for t in tensors]
        ops = []
        for t, o in zip(tensors, outs):
            ops.append(dist.P2POp(dist.isend, t.contiguous(), self.right, group=self.group))
            ops.append(dist.P2POp(dist.irecv, o, self.left, group=self.group))
        self._work = dist.batch_isend_irecv(ops)
        return outs

    def finish(self):
        for w in self._work:
            w.wait()
        self._work = None


def merge(out, lse, part, part_lse):
    if out is None:
        return part, part_lse
    new = torch.logaddexp(lse, part_lse)
    return out * (lse - new).exp() + part * (part_lse - new).exp(), new


def block(q, k, v, causal):
    s = q @ k.transpose(-1, -2) / q.size(-1) ** 0.5
    if causal:
        s = s.masked_fill(torch.ones_like(s, dtype=torch.bool).triu(1), float("-inf"))
    lse = s.logsumexp(-1, keepdim=True)
    return F.softmax(s, -1) @ v, lse


@torch.no_grad()
def ring_attention(q, k, v, ring: Ring):
    out = lse = None
    for hop in range(ring.size):
        last = hop + 1 == ring.size
        if not last:
            nk, nv = ring.start(k, v)
        if hop <= ring.rank:
            part, part_lse = block(q, k, v, causal=hop == 0)
            out, lse = merge(out, lse, part, part_lse)
        if not last:
            ring.finish()
            k, v = nk, nv
    return out
