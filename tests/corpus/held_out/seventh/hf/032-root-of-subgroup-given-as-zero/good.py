import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh


class RolloutWorker:
    def __init__(self, engine, tp_size):
        world = dist.get_world_size()
        mesh = init_device_mesh("cuda", (world // tp_size, tp_size), mesh_dim_names=("dp", "tp"))
        self.tp_rank = mesh["tp"].get_local_rank()
        self.tp_group = mesh["tp"].get_group()
        self.dp_group = mesh["dp"].get_group()
        self.engine = engine

    def generate(self, prompts):
        results = [None]
        if self.tp_rank == 0:
            results = [self.engine.generate(prompts)]
        root = dist.get_global_rank(self.tp_group, 0)
        dist.broadcast_object_list(results, src=root, group=self.tp_group)
        return results[0]

    def mean_reward(self, rewards):
        total = torch.tensor([sum(rewards), float(len(rewards))], device="cuda")
        dist.all_reduce(total, group=self.dp_group)
        return (total[0] / total[1]).item()


def run(engine, prompt_batches, reward_fn, tp_size):
    worker = RolloutWorker(engine, tp_size)
    for prompts in prompt_batches:
        texts = worker.generate(prompts)
        value = worker.mean_reward([reward_fn(t) for t in texts])
        if dist.get_rank() == 0:
            print(f"reward {value:.3f}")
