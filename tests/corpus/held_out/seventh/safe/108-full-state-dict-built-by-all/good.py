import os

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import fully_shard


def build(dim, depth):
    model = torch.nn.Sequential(*(torch.nn.Linear(dim, dim) for _ in range(depth)))
    for layer in model:
        fully_shard(layer)
    return fully_shard(model)


def export(model, path):
    """One ordinary file from the sharded weights; only rank 0 receives them."""
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    weights = get_model_state_dict(model, options=options)
    if dist.get_rank() == 0:
        torch.save(weights, f"{path}.part")
        os.replace(f"{path}.part", path)
    del weights
    dist.barrier()


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    model = build(64, 4)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(10):
        loss = model(torch.randn(8, 64, device="cuda")).pow(2).mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
    export(model, "export.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
