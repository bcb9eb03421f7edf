import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.fsdp import FullStateDictConfig, FullyShardedDataParallel as FSDP, StateDictType


def build(device):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))
    return FSDP(net.to(device), device_id=device)


def snapshot(model, path):
    rank = dist.get_rank()
    config = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, config):
        weights = model.state_dict() if rank == 0 else None
    if rank == 0:
        torch.save(weights, path)


def main():
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    device = torch.device("cuda", local)
    dist.init_process_group("nccl")
    model = build(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(3):
        for _ in range(10):
            x = torch.randn(8, 64, device=device)
            opt.zero_grad()
            (model(x) - x).pow(2).mean().backward()
            opt.step()
        snapshot(model, f"/tmp/autoencoder_{epoch}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
