import os
from collections import OrderedDict
from enum import Enum
from typing import Dict, Optional

import torch
import torch.distributed as dist


class Reduce(str, Enum):
    mean = "mean"
    sum = "sum"
    max = "max"


class MetricStore:
    def __init__(self, device, group=None):
        self.device, self.group = device, group
        self.values: Dict[str, torch.Tensor] = OrderedDict()
        self.kinds: Dict[str, Reduce] = {}

    def record(self, name: str, value, kind: Reduce = Reduce.mean):
        self.values[name] = torch.as_tensor(value, dtype=torch.float32, device=self.device)
        self.kinds[name] = kind

    def flush(self) -> Dict[str, float]:
        """Ranks of several pipeline stages record different metrics."""
        schemas = [None] * dist.get_world_size(self.group)
        dist.all_gather_object(schemas, {k: v.value for k, v in self.kinds.items()}, group=self.group)
        kinds: Dict[str, str] = {}
        counts: Dict[str, int] = {}
        for schema in schemas:
            for name, kind in schema.items():
                kinds.setdefault(name, kind)
                counts[name] = counts.get(name, 0) + 1
        summed = [n for n in sorted(kinds) if kinds[n] != "max"]
        maxed = [n for n in sorted(kinds) if kinds[n] == "max"]
        out: Dict[str, float] = {}
        if summed:
            zero = torch.zeros((), device=self.device)
            vec = torch.stack([self.values.get(n, zero) for n in summed])
            dist.all_reduce(vec, group=self.group)
            for n, v in zip(summed, vec.tolist()):
                out[n] = v / counts[n] if kinds[n] == "mean" else v
        if maxed:
            low = torch.full((), float("-inf"), device=self.device)
            vec = torch.stack([self.values.get(n, low) for n in maxed])
            dist.all_reduce(vec, op=dist.ReduceOp.MAX, group=self.group)
            out.update(zip(maxed, vec.tolist()))
        self.values.clear()
        self.kinds.clear()
        return out


def main(log_file: Optional[str] = None):
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    store = MetricStore(torch.device("cuda", local))
    for step in range(100):
        store.record("step_time", 0.1 * (1 + local), Reduce.max)
        if dist.get_rank() == dist.get_world_size() - 1:
            store.record("loss", torch.rand(()))
        if dist.get_rank() == 0:
            store.record("tokens", 4096, Reduce.sum)
        metrics = store.flush()
        if dist.get_rank() == 0:
            print(step, metrics)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
