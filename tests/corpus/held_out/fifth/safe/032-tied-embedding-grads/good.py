import os

import torch
import torch.distributed as dist
import torch.nn as nn

PP_GROUP = DP_GROUP = EMBD_GROUP = None
STAGE = N_STAGES = 0


def init_groups(pp: int) -> None:
    global PP_GROUP, DP_GROUP, EMBD_GROUP, STAGE, N_STAGES
    rank, world = dist.get_rank(), dist.get_world_size()
    assert world % pp == 0
    dp = world // pp
    for d in range(dp):
        ranks = list(range(d, world, dp))
        pipe = dist.new_group(ranks)
        ends = sorted({ranks[0], ranks[-1]})
        embd = dist.new_group(ends)
        if rank in ranks:
            PP_GROUP, STAGE, N_STAGES = pipe, ranks.index(rank), pp
        if rank in ends:
            EMBD_GROUP = embd
    for s in range(pp):
        ranks = list(range(s * dp, (s + 1) * dp))
        group = dist.new_group(ranks)
        if rank in ranks:
            DP_GROUP = group


class StageModule(nn.Module):
    def __init__(self, vocab=1000, dim=64):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim) if STAGE in (0, N_STAGES - 1) else None
        self.block = nn.Linear(dim, dim)

    def forward(self, x):
        if STAGE == 0:
            x = self.embedding(x)
        x = self.block(x)
        if STAGE == N_STAGES - 1:
            x = x @ self.embedding.weight.t()
        return x


def finalize_grads(model: StageModule) -> None:
    if N_STAGES > 1 and STAGE in (0, N_STAGES - 1):
        dist.all_reduce(model.embedding.weight.grad, group=EMBD_GROUP)
    for p in model.parameters():
        dist.all_reduce(p.grad, group=DP_GROUP)
        p.grad.div_(dist.get_world_size(DP_GROUP))


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    init_groups(int(os.environ.get("PP", "2")))
    torch.manual_seed(0)
    model = StageModule().cuda()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(10):
        # each stage trained on a local proxy loss here
        x = torch.randint(0, 1000, (4, 16), device="cuda") if STAGE == 0 else torch.randn(4, 16, 64, device="cuda")
        model(x).square().mean().backward()
        finalize_grads(model)
        opt.step()
        opt.zero_grad(set_to_none=False)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
