import os

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullStateDictConfig, FullyShardedDataParallel as FSDP, StateDictType


def save(model, step, folder):
    config = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, config):
        state = model.state_dict()
    if dist.get_rank() == 0:
        tmp = os.path.join(folder, ".part")
        torch.save({"step": step, "model": state}, tmp)
        os.replace(tmp, os.path.join(folder, f"step{step}.pt"))
    dist.barrier()


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    os.makedirs("ckpt", exist_ok=True)
    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    model = FSDP(net.cuda())
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(1, 101):
        loss = model(torch.randn(16, 64, device="cuda")).square().mean()
        loss.backward()
        norm = model.clip_grad_norm_(1.0)
        opt.step()
        opt.zero_grad()
        if step % 50 == 0:
            save(model, step, "ckpt")
            if dist.get_rank() == 0:
                print(step, float(norm))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
