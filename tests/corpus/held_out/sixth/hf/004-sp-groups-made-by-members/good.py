import os
from dataclasses import dataclass

import torch
from torch import distributed as dist

from vidgen.pipeline import VideoPipeline


@dataclass
class ParallelGroups:
    cfg_group: dist.ProcessGroup = None
    cfg_index: int = 0
    sp_group: dist.ProcessGroup = None
    sp_size: int = 1


def split(ranks, parts):
    size = len(ranks) // parts
    return [ranks[i * size:(i + 1) * size] for i in range(parts)]


def build_groups(cfg_degree: int, sp_degree: int) -> ParallelGroups:
    rank, world = dist.get_rank(), dist.get_world_size()
    if cfg_degree * sp_degree != world:
        raise ValueError(f"cfg {cfg_degree} x sp {sp_degree} does not give {world} ranks")
    out = ParallelGroups(sp_size=sp_degree)
    blocks = split(list(range(world)), cfg_degree)
    for index, members in enumerate(zip(*blocks)):
        group = dist.new_group(list(members))
        if rank in members:
            out.cfg_group = group
            out.cfg_index = members.index(rank)
    for members in blocks:
        group = dist.new_group(members)
        if rank in members:
            out.sp_group = group
    return out


def ulysses(x, group, size):
    """[seq/size, heads, dim] -> [seq, heads/size, dim]"""
    parts = [p.contiguous() for p in x.chunk(size, dim=1)]
    recv = [torch.empty_like(p) for p in parts]
    dist.all_to_all(recv, parts, group=group)
    return torch.cat(recv, dim=0)


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    groups = build_groups(cfg_degree=2, sp_degree=dist.get_world_size() // 2)
    pipe = VideoPipeline.from_pretrained("weights/video-14b", torch_dtype=torch.bfloat16).to("cuda")
    pipe.set_attention_exchange(lambda x: ulysses(x, groups.sp_group, groups.sp_size))
    pipe.set_cfg_branch(groups.cfg_index, groups.cfg_group)
    video = pipe("a paper boat on a river", num_inference_steps=40, seed=11)
    if dist.get_rank() == 0:
        video.save("boat.mp4", fps=16)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
