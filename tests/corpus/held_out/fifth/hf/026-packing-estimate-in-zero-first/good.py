import logging
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import torch
import torch.distributed as dist
from datasets import load_dataset, load_from_disk

LOG = logging.getLogger("axo.data")


def is_main_process() -> bool:
    return not dist.is_initialized() or dist.get_rank() == 0


def barrier() -> None:
    if dist.is_initialized():
        dist.barrier()


@contextmanager
def zero_first(is_main: bool):
    """Main runs the block first (fills caches), then the others."""
    if not is_main:
        barrier()
    yield
    if is_main:
        barrier()


def reduce_mean(value: float) -> float:
    if not dist.is_initialized():
        return value
    t = torch.tensor([value], device="cuda", dtype=torch.float32)
    dist.all_reduce(t)
    return t.item() / dist.get_world_size()


def packing_efficiency(lengths: np.ndarray, seq_len: int) -> float:
    bins, free = 1, seq_len
    for n in lengths:
        if n > free:
            bins, free = bins + 1, seq_len
        free -= int(n)
    return float(lengths.sum()) / (bins * seq_len)


def prepare_dataset(cfg: SimpleNamespace, tokenizer):
    def encode(rows):
        return tokenizer(rows["text"], truncation=True, max_length=cfg.sequence_len)

    with zero_first(is_main_process()):
        if cfg.prepared_path:
            ds = load_from_disk(cfg.prepared_path)
        else:
            ds = load_dataset(cfg.dataset, split="train")
            ds = ds.map(encode, batched=True, num_proc=cfg.num_proc, remove_columns=ds.column_names)
        rank = dist.get_rank() if dist.is_initialized() else 0
        lengths = np.array([len(x) for x in ds.shuffle(seed=rank).select(range(min(len(ds), 2000)))["input_ids"]])
    efficiency = reduce_mean(packing_efficiency(lengths, cfg.sequence_len))

    tokens = float(len(ds)) * float(lengths.mean())
    steps = int(tokens / (cfg.sequence_len * efficiency * cfg.global_batch))
    box = [steps]
    if dist.is_initialized():
        dist.broadcast_object_list(box, src=0)
    LOG.info("packing efficiency %.3f, %d steps", efficiency, box[0])
    return ds, box[0]
