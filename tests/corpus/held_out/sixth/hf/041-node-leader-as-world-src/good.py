import logging
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.checkpoint import FileSystemReader

from objstore import make_object_store

log = logging.getLogger(__name__)


class NodeCachedReader(FileSystemReader):
    """Every node downloads each shard file once, although several of its ranks may need it."""

    def __init__(self, uri: str, node_folder: str, node_group: dist.ProcessGroup):
        super().__init__(node_folder)
        self.store, self.prefix = make_object_store(uri)
        self.folder = Path(node_folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.node_group = node_group
        local_world = int(os.environ["LOCAL_WORLD_SIZE"])
        self.node_leader = dist.get_rank() // local_world * local_world

    def _fetch(self, name: str):
        target = self.folder / name
        if not target.exists():
            self.store.download_object(f"{self.prefix}/{name}", str(target))

    def prepare_files(self, needed):
        per_rank = [None] * dist.get_world_size(self.node_group)
        dist.all_gather_object(per_rank, sorted(needed), group=self.node_group)
        plan = [None]
        if dist.get_rank() == self.node_leader:
            names = sorted(set().union(*per_rank))
            plan = [{name: i % len(per_rank) for i, name in enumerate(names)}]
        dist.broadcast_object_list(plan, src=self.node_leader, group=self.node_group)
        mine = dist.get_rank() - self.node_leader
        for name, owner in plan[0].items():
            if owner == mine:
                self._fetch(name)
        dist.barrier()
        log.debug("all %d files present", len(plan[0]))


def make_node_group() -> dist.ProcessGroup:
    local_world = int(os.environ["LOCAL_WORLD_SIZE"])
    mine = None
    for first in range(0, dist.get_world_size(), local_world):
        ranks = list(range(first, first + local_world))
        group = dist.new_group(ranks)
        if dist.get_rank() in ranks:
            mine = group
    return mine


def open_reader(uri: str, needed) -> NodeCachedReader:
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    reader = NodeCachedReader(uri, "/local/ckpt", make_node_group())
    if os.environ["LOCAL_RANK"] == "0":
        reader._fetch(".metadata")
    dist.barrier()
    reader.prepare_files(needed)
    return reader
