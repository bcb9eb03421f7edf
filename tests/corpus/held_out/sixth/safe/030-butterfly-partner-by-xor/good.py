import torch
import torch.distributed as dist


def check_power_of_two(world):
    if world & (world - 1):
        raise ValueError(f"butterfly needs a power of two, got {world}")


def swap_with(partner, mine):
    theirs = torch.empty_like(mine)
    if dist.get_rank() < partner:
        dist.send(mine, partner)
        dist.recv(theirs, partner)
    else:
        dist.recv(theirs, partner)
        dist.send(mine, partner)
    return theirs


def adasum_pair(a, b):
    dot = torch.dot(a, b)
    na, nb = a.dot(a).clamp(min=1e-12), b.dot(b).clamp(min=1e-12)
    return (1 - dot / (2 * na)) * a + (1 - dot / (2 * nb)) * b


@torch.no_grad()
def butterfly(flat):
    rank, world = dist.get_rank(), dist.get_world_size()
    bit = 1
    while bit < world:
        partner = rank ^ bit
        theirs = swap_with(partner, flat)
        low, high = (flat, theirs) if rank < partner else (theirs, flat)
        flat = adasum_pair(low, high)
        bit <<= 1
    return flat


class AdasumStep:
    def __init__(self, model, optimizer):
        check_power_of_two(dist.get_world_size())
        self.params = [p for p in model.parameters() if p.requires_grad]
        self.optimizer = optimizer

    def __call__(self):
        before = torch.nn.utils.parameters_to_vector(self.params).detach().clone()
        self.optimizer.step()
        after = torch.nn.utils.parameters_to_vector(self.params).detach()
        delta = butterfly((after - before).contiguous())
        torch.nn.utils.vector_to_parameters(before + delta, self.params)
