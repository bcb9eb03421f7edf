import torch
from torch import distributed as td


def sum_first(grad, scale):
    td.all_reduce(grad)
    td.broadcast(scale, src=0)


def scale_first(grad, scale):
    td.broadcast(scale, src=0)
    td.all_reduce(grad)


PLANS = {0: sum_first, 1: scale_first}

td.init_process_group("gloo")
grad, scale = torch.ones(16), torch.tensor(0.5)
plan = PLANS[td.get_rank() % 2]
plan(grad, scale)
print((grad * scale).sum().item())
td.destroy_process_group()
