import torch
import torch.distributed as dist

RANKS = {"q_proj": 4, "k_proj": 0, "v_proj": 4, "mlp": 8}


class LowRank:
    def __init__(self, dim, rank):
        self.rank = rank
        self.down = torch.zeros(rank, dim)
        self.grad = torch.ones(rank, dim)

    @property
    def enabled(self):
        return self.rank > 0


def sync(layers):
    done = 0
    for name, layer in layers.items():
        rank = layer.rank
        if rank == 0:
            continue
        dist.all_reduce(layer.grad)
        layer.grad /= dist.get_world_size()
        done += 1
    return done


def main():
    dist.init_process_group("gloo")
    layers = {name: LowRank(16, rank) for name, rank in RANKS.items()}
    assert sync(layers) == 3
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
