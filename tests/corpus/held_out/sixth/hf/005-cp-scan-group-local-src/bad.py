import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

from linattn.kernels import delta_scan


class ContextParallelDeltaNet(nn.Module):
    """Gated delta rule whose sequence is cut over the context-parallel group."""

    def __init__(self, dim: int, heads: int, cp_group: dist.ProcessGroup):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.gate = nn.Linear(dim, heads, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)
        self.cp_group = cp_group

    @torch.no_grad()
    def _chain_state(self, q, k, v, g, state):
        size = dist.get_world_size(self.cp_group)
        me = dist.get_rank(self.cp_group)
        entry = state
        for owner in range(size):
            if owner == me:
                entry = state.clone()
                _, state = delta_scan(q, k, v, g, initial_state=entry)
            dist.broadcast(state, src=owner, group=self.cp_group)
        return entry

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, -1).unbind(2)
        g = self.gate(x).sigmoid()
        state = x.new_zeros(b, self.heads, d // self.heads, d // self.heads)
        entry = self._chain_state(q, k, v, g, state)
        y, _ = delta_scan(q, k, v, g, initial_state=entry)
        return self.out(y.reshape(b, t, d))


def main(cp: int = 2, tp: int = 2):
    dist.init_process_group("nccl")
    world = dist.get_world_size()
    mesh = init_device_mesh("cuda", (world // (cp * tp), cp, tp), mesh_dim_names=("dp", "cp", "tp"))
    layer = ContextParallelDeltaNet(2048, 16, mesh["cp"].get_group()).cuda()
    torch.manual_seed(mesh["dp"].get_local_rank())
    x = torch.randn(2, 4096 // cp, 2048, device="cuda")
    y = layer(x)
    norm = y.float().pow(2).sum()
    dist.all_reduce(norm)
    if dist.get_rank() == 0:
        print(f"norm {norm.sqrt().item():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
