import os
import tempfile

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.nn.parallel import DistributedDataParallel as DDP


def save_full(model, path):
    """All ranks take part in putting the weights together; one writes."""
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    state = get_model_state_dict(model, options=options)
    if dist.get_rank() == 0:
        torch.save(state, path + ".part")
        os.replace(path + ".part", path)
    del state
    dist.barrier()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DDP(torch.nn.Linear(4, 2))
    path = os.path.join(tempfile.gettempdir(), f"full-{os.environ['MASTER_PORT']}.pt")
    save_full(model, path)
    assert "weight" in torch.load(path)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
