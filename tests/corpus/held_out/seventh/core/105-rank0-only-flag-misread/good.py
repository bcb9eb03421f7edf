import os

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullStateDictConfig, StateDictType
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def save_model(model, path):
    config = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, config):
        state = model.state_dict()  # all ranks gather, rank 0 gets the result
    if dist.get_rank() == 0:
        torch.save(state, path)
    dist.barrier()


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", local_rank))
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64))
    model = FSDP(model.cuda(), device_id=local_rank)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(20):
        x = torch.randn(8, 64, device="cuda")
        (model(x) - x).pow(2).mean().backward()
        opt.step()
        opt.zero_grad()
    save_model(model, "/tmp/autoencoder.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
