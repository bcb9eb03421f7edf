import logging
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import StateDictType

from mpt.data import streaming_loader
from mpt.model import build_mpt

log = logging.getLogger("resume")


def read_shard(folder: Path):
    return torch.load(folder / f"rank{dist.get_rank()}.pt", map_location="cpu")


def apply_shard(model, optimizer, shard):
    with FSDP.state_dict_type(model, StateDictType.LOCAL_STATE_DICT):
        model.load_state_dict(shard["model"])
    optimizer.load_state_dict(shard["optim"])
    meta = [shard["batch"] if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(meta, src=0)
    return meta[0]


def resume(model, optimizer, root: Path) -> int:
    """Newest checkpoint that can be read; 0 if there is none."""
    names = [sorted(p.name for p in root.glob("ba*")) if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(names, src=0)
    for name in reversed(names[0]):
        try:
            shard = read_shard(root / name)
        except (EOFError, RuntimeError, OSError) as err:
            log.warning("cannot read %s: %s, trying an older one", name, err)
            shard = None
        if shard is None:
            continue
        return apply_shard(model, optimizer, shard)
    return 0


def main():
    logging.basicConfig(level=logging.INFO)
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    model = FSDP(build_mpt("1b").cuda())
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4)
    batch_idx = resume(model, optimizer, Path("/shared/mpt-1b"))
    loader = iter(streaming_loader(dist.get_rank(), dist.get_world_size(), skip=batch_idx))
    for _ in range(batch_idx, 50_000):
        loss = model(next(loader).cuda())
        loss.backward()
        model.clip_grad_norm_(1.0)
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
