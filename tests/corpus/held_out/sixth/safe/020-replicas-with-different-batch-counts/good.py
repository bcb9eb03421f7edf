import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh


class TensorParallelScorer:
    def __init__(self, model, group):
        self.model, self.group = model, group
        self.src = dist.get_process_group_ranks(group)[0]

    @torch.inference_mode()
    def nll(self, ids):
        hidden = self.model.body(ids)
        logits = self.model.head(hidden)
        dist.all_reduce(logits, group=self.group)
        logp = logits[:, :-1].log_softmax(-1)
        return -logp.gather(-1, ids[:, 1:, None]).sum()

    def load(self, path):
        shape = torch.zeros(2, dtype=torch.long, device="cuda")
        ids = None
        if dist.get_rank() == self.src:
            ids = torch.load(path).cuda()
            shape.copy_(torch.tensor(ids.shape))
        dist.broadcast(shape, self.src, group=self.group)
        if ids is None:
            ids = torch.empty(*shape.tolist(), dtype=torch.long, device="cuda")
        dist.broadcast(ids, self.src, group=self.group)
        return ids


def main(files, tp, make_model):
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    mesh = init_device_mesh("cuda", (dist.get_world_size() // tp, tp), mesh_dim_names=("dp", "tp"))
    replica, replicas = mesh["dp"].get_local_rank(), mesh["dp"].size()
    scorer = TensorParallelScorer(make_model(mesh["tp"]), mesh["tp"].get_group())
    total = torch.zeros(2, device="cuda", dtype=torch.float64)
    for path in sorted(files)[replica::replicas]:
        ids = scorer.load(path)
        total[0] += scorer.nll(ids)
        total[1] += ids[:, 1:].numel()
    dist.all_reduce(total)
    if dist.get_rank() == 0:
        print("ppl", torch.exp(total[0] / total[1]).item(), file=sys.stderr)
    dist.destroy_process_group()
