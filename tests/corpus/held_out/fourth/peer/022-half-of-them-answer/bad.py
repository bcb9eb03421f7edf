import torch
import torch.distributed as dist


def collect(rank, size):
    slot = torch.zeros(1)
    if rank == 0:
        total = 0.0
        for peer in range(1, size):
            dist.recv(slot, src=peer)
            total += slot.item()
        return total
    if rank % 2 == 1:
        slot.fill_(rank)
        dist.send(slot, dst=0)
    return None


def main():
    dist.init_process_group("gloo")
    print(collect(dist.get_rank(), dist.get_world_size()))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
