import dataclasses
import hashlib
import json
import os
import platform

import torch
import torch.distributed as dist


@dataclasses.dataclass
class Settings:
    model: str = "gpt"
    layers: int = 12
    seq_len: int = 1024
    lr: float = 3e-4
    precision: str = "bf16"
    host_cache: str = dataclasses.field(default="/tmp", metadata={"local": True})


class MismatchError(RuntimeError):
    pass


def digest(cfg):
    common = {f.name: getattr(cfg, f.name) for f in dataclasses.fields(cfg) if not f.metadata.get("local")}
    text = json.dumps(common, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16], common


def assert_same_everywhere(cfg):
    code, common = digest(cfg)
    entry = (code, platform.node(), torch.__version__, common)
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, entry)
    odd = [(r, e) for r, e in enumerate(everyone) if e[0] != everyone[0][0]]
    if odd:
        lines = [f"rank {r} on {e[1]}: " + ", ".join(
            f"{k}={v!r}" for k, v in e[3].items() if everyone[0][3].get(k) != v) for r, e in odd]
        raise MismatchError("settings differ from rank 0\n" + "\n".join(lines))
    versions = {e[2] for e in everyone}
    if len(versions) > 1 and dist.get_rank() == 0:
        print("warning: several torch versions:", versions)


def same_weights(model):
    total = torch.stack([p.detach().double().sum() for p in model.parameters()]).cuda()
    low, high = total.clone(), total.clone()
    dist.all_reduce(low, op=dist.ReduceOp.MIN)
    dist.all_reduce(high, op=dist.ReduceOp.MAX)
    if not torch.equal(low, high):
        raise MismatchError("replicas start from different weights")


def setup(cfg, make_model):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    assert_same_everywhere(cfg)
    torch.manual_seed(0)
    model = make_model(cfg).cuda()
    same_weights(model)
    dist.barrier()
    return torch.nn.parallel.DistributedDataParallel(model)
