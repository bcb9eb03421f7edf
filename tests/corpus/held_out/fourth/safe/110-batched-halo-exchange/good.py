import torch
import torch.distributed as dist


class Halo:
    def __init__(self, cells):
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.cells = torch.full((cells + 2,), float(self.rank))

    def exchange(self):
        left_in, right_in = torch.zeros(1), torch.zeros(1)
        ops = []
        if self.rank > 0:
            ops.append(dist.P2POp(dist.isend, self.cells[1:2].clone(), self.rank - 1))
            ops.append(dist.P2POp(dist.irecv, left_in, self.rank - 1))
        if self.rank < self.size - 1:
            ops.append(dist.P2POp(dist.isend, self.cells[-2:-1].clone(), self.rank + 1))
            ops.append(dist.P2POp(dist.irecv, right_in, self.rank + 1))
        if ops:
            for request in dist.batch_isend_irecv(ops):
                request.wait()
        self.cells[0], self.cells[-1] = left_in.item(), right_in.item()


dist.init_process_group("gloo")
halo = Halo(6)
for _ in range(3):
    halo.exchange()
    halo.cells[1:-1] = 0.5 * (halo.cells[:-2] + halo.cells[2:])
print(halo.rank, halo.cells.sum().item())
dist.destroy_process_group()
