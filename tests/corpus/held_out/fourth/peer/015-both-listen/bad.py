import torch
import torch.distributed as dist


class Exchange:
    def __init__(self, rank):
        self.rank = rank
        self.partner = 1 - rank

    def swap(self, mine):
        theirs = torch.zeros_like(mine)
        if self.rank == 0:
            dist.recv(theirs, src=self.partner)
            dist.send(mine, dst=self.partner)
        else:
            dist.recv(theirs, src=self.partner)
            dist.send(mine, dst=self.partner)
        return theirs


dist.init_process_group("gloo")
ex = Exchange(dist.get_rank())
print(ex.rank, ex.swap(torch.full((2,), ex.rank + 10.0)))
dist.destroy_process_group()
