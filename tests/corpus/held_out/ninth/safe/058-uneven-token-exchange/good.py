import torch
import torch.distributed as dist


def dispatch(tokens, owner, world):
    """Send each token to the rank that owns its expert."""
    order = torch.argsort(owner, stable=True)
    send_counts = torch.bincount(owner, minlength=world)
    recv_counts = torch.empty_like(send_counts)
    dist.all_to_all_single(recv_counts, send_counts)
    out = tokens.new_empty(int(recv_counts.sum()))
    dist.all_to_all_single(
        out,
        tokens[order].contiguous(),
        output_split_sizes=recv_counts.tolist(),
        input_split_sizes=send_counts.tolist(),
    )
    return out


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    n = 3 + 2 * rank
    tokens = torch.arange(n, dtype=torch.float32)
    owner = torch.arange(n) % world
    mine = dispatch(tokens, owner, world)
    count = torch.tensor([mine.numel()])
    dist.all_reduce(count)
    assert count.item() == sum(3 + 2 * r for r in range(world))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
