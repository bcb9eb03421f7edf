import torch
import torch.distributed as dist


def fetch(part):
    full = torch.empty(part.numel() * dist.get_world_size())
    return full, dist.all_gather_into_tensor(full, part, async_op=True)


def forward(x, parts):
    ahead = fetch(parts[0])
    for i in range(len(parts)):
        weight, work = ahead
        work.wait()
        if i + 1 < len(parts):
            ahead = fetch(parts[i + 1])
        x = torch.tanh(x * weight)
    return x


def main():
    dist.init_process_group("gloo")
    world = dist.get_world_size()
    parts = [torch.full((4,), 0.1 * (i + 1)) for i in range(6)]
    out = forward(torch.ones(4 * world), parts)
    total = out.sum()
    dist.all_reduce(total)
    if dist.get_rank() == 0:
        print(total.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
