import os
import torch
import torch.distributed as dist


class GlobalState:
    def __init__(self, root):
        self.rank = dist.get_rank()
        self.root = root

    def path(self):
        return os.path.join(self.root, "extra_state", f"rank_{self.rank}.pt")

    def restore(self, sampler):
        if not os.path.exists(self.path()):
            print(f"rank {self.rank}: no trainer state, weights only")
            return 0
        state = torch.load(self.path(), weights_only=False)
        sampler.load_state_dict(state["sampler"])
        torch.set_rng_state(state["rng"])
        return state["global_step"]


def train(model, opt, batches, sampler, root, total_steps):
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    first = GlobalState(root).restore(sampler)
    for step in range(first, total_steps):
        loss = model(**batches.fetch(step))
        loss.backward()
        opt.step()
        opt.zero_grad()
        mean = loss.detach().clone()
        dist.all_reduce(mean, op=dist.ReduceOp.AVG)
        if dist.get_rank() == 0:
            print(step, mean.item())
    dist.destroy_process_group()
