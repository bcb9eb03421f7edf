import torch
import torch.distributed as dist


def all_gather_async(tensor, group=None):
    world = dist.get_world_size(group)
    out = tensor.new_empty(world * tensor.shape[0], *tensor.shape[1:])
    work = dist.all_gather_into_tensor(out, tensor, group=group, async_op=True)
    return out, work


class ShardedAttention(torch.nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.qkv = torch.nn.Linear(dim, 3 * dim)
        self.scale = torch.nn.Parameter(torch.ones(heads))
        self.heads = heads

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        k_all, k_work = all_gather_async(k)
        v_all, v_work = all_gather_async(v)
        s_all, s_work = all_gather_async(self.scale)
        scores_scale = self.scale.mean()
        for work in (k_work, v_work, s_work):
            work.wait()
        scores = (q @ k_all.transpose(-1, -2)) * scores_scale
        return scores.softmax(-1) @ v_all + s_all.sum() * 0


def main(batches):
    dist.init_process_group("gloo")
    layer = ShardedAttention(64, 8)
    with torch.no_grad():
        for x in batches:
            layer(x)
    dist.destroy_process_group()
