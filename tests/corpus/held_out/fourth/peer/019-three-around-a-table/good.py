import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
fork, plate = torch.full((1,), float(rank)), torch.zeros(1)
if rank == 0:
    dist.send(fork, dst=1)
    dist.recv(plate, src=2)
elif rank == 1:
    dist.recv(plate, src=0)
    dist.send(fork, dst=2)
elif rank == 2:
    dist.recv(plate, src=1)
    dist.send(fork, dst=0)
dist.barrier()
print(rank, plate.item())
dist.destroy_process_group()
