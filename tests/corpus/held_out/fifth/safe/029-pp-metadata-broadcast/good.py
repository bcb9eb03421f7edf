import os
from dataclasses import dataclass
from typing import List, Optional

import torch
import torch.distributed as dist


@dataclass
class Packed:
    cu_seqlens: torch.Tensor
    tokens: Optional[torch.Tensor] = None


def pack(seed: int, n_micro: int) -> List[Packed]:
    gen = torch.Generator().manual_seed(seed)
    out = []
    for _ in range(n_micro):
        lens = torch.randint(16, 512, (int(torch.randint(2, 9, (1,), generator=gen)),), generator=gen)
        cu = torch.cat([torch.zeros(1, dtype=torch.long), lens.cumsum(0)])
        out.append(Packed(cu, torch.randint(0, 32000, (int(cu[-1]),), generator=gen)))
    return out


def share_with_middle_stages(samples: Optional[List[Packed]], pp_group, device) -> List[Packed]:
    """First and last stage read the data themselves; the middle ones only need the sequence bounds."""
    stage, stages = dist.get_rank(pp_group), dist.get_world_size(pp_group)
    if stages <= 2:
        return samples
    src = dist.get_global_rank(pp_group, 0)
    if stage == 0:
        flat = [torch.tensor([len(samples)])]
        for s in samples:
            flat += [torch.tensor([len(s.cu_seqlens)]), s.cu_seqlens]
        payload = torch.cat(flat).to(device)
        length = torch.tensor([payload.numel()], device=device)
        dist.broadcast(length, src, group=pp_group)
        dist.broadcast(payload, src, group=pp_group)
        return samples
    length = torch.zeros(1, dtype=torch.long, device=device)
    dist.broadcast(length, src, group=pp_group)
    payload = torch.empty(int(length.item()), dtype=torch.long, device=device)
    dist.broadcast(payload, src, group=pp_group)
    if stage == stages - 1:
        return samples
    values = payload.cpu()
    out, pos = [], 1
    for _ in range(int(values[0])):
        n = int(values[pos])
        out.append(Packed(values[pos + 1:pos + 1 + n].clone()))
        pos += 1 + n
    return out


def main():
    dist.init_process_group("nccl")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    world = dist.get_world_size()
    pp = int(os.environ.get("PP", world))
    assert world % pp == 0
    mine = None
    for start in range(world // pp):
        ranks = list(range(start, world, world // pp))
        group = dist.new_group(ranks)
        if dist.get_rank() in ranks:
            mine = group
    for it in range(10):
        edge = dist.get_rank(mine) in (0, pp - 1)
        samples = pack(it, n_micro=4 + it % 3) if edge else None
        samples = share_with_middle_stages(samples, mine, device)
        assert len(samples) == 4 + it % 3
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
