import datetime as dt
import os
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.distributed.fsdp import FullStateDictConfig, StateDictType
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


@contextmanager
def job():
    dist.init_process_group("nccl", timeout=dt.timedelta(minutes=20))
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    yield dist.get_rank(), dist.get_world_size()
    dist.barrier()
    dist.destroy_process_group()


def full_weights(model):
    cfg = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, cfg):
        return model.state_dict()


class Saver:
    def __init__(self, pattern, rank):
        self.pattern = pattern
        self.rank = rank

    def __call__(self, model, step):
        weights = full_weights(model)
        if self.rank > 0:
            return
        path = self.pattern.format(step=step)
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        torch.save(weights, path)
        print("wrote", path)


def build(vocab=32000, width=512):
    return nn.Sequential(
        nn.Embedding(vocab, width),
        FSDP(nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))),
        nn.Linear(width, vocab),
    ).cuda()


def main():
    with job() as (rank, world):
        torch.manual_seed(rank)
        model = FSDP(build())
        opt = optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95))
        save = Saver("out/step{step:06d}.pt", rank)
        for step in range(1, 2001):
            tokens = torch.randint(0, 32000, (4, 129), device="cuda")
            logits = model(tokens[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            loss.backward()
            opt.step()
            opt.zero_grad(set_to_none=True)
            if step % 500 == 0:
                save(model, step)


if __name__ == "__main__":
    main()
