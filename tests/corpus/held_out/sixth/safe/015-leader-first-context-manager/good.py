import contextlib
import logging
import os

import torch.distributed as dist
from datasets import load_dataset
from transformers import AutoTokenizer

logger = logging.getLogger(__name__)


class Env:
    def __init__(self):
        self.rank = int(os.environ.get("RANK", 0))
        self.local_rank = int(os.environ.get("LOCAL_RANK", 0))
        self.world = int(os.environ.get("WORLD_SIZE", 1))
        self.shared_disk = os.environ.get("SHARED_DISK", "1") == "1"

    @property
    def leads(self):
        return self.rank == 0 if self.shared_disk else self.local_rank == 0

    @contextlib.contextmanager
    def leader_first(self, what):
        if self.world == 1:
            yield
            return
        if not self.leads:
            logger.debug("rank %d waits for the leader: %s", self.rank, what)
            dist.barrier()
        try:
            yield
        finally:
            if self.leads:
                dist.barrier()


def tokenised(env, name, tokenizer, max_len, cache):
    raw = load_dataset(name, split="train", cache_dir=cache)

    def encode(rows):
        return tokenizer(rows["text"], truncation=True, max_length=max_len)

    return raw.map(encode, batched=True, remove_columns=raw.column_names)


def prepare(env: Env, cfg):
    dist.init_process_group("nccl" if cfg.gpu else "gloo")
    with env.leader_first("tokenizer"):
        tokenizer = AutoTokenizer.from_pretrained(cfg.model, cache_dir=cfg.cache)
    with env.leader_first("dataset"):
        data = tokenised(env, cfg.data, tokenizer, cfg.max_len, cfg.cache)
    return tokenizer, data.shard(env.world, env.rank)
