import os
import threading

import torch
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp
from torch import nn, optim

STEPS = 200


class BatchUpdateServer:
    def __init__(self, trainers):
        self.model = nn.Linear(64, 10)
        self.opt = optim.SGD(self.model.parameters(), lr=0.01)
        self.lock = threading.Lock()
        self.waiting = torch.futures.Future()
        self.trainers, self.count = trainers, 0
        for p in self.model.parameters():
            p.grad = torch.zeros_like(p)

    def fetch(self):
        return self.model

    @staticmethod
    @rpc.functions.async_execution
    def update(server_rref, grads):
        self = server_rref.local_value()
        with self.lock:
            for p, g in zip(self.model.parameters(), grads):
                p.grad += g / self.trainers
            self.count += 1
            fut = self.waiting
            if self.count == self.trainers:
                self.opt.step()
                self.opt.zero_grad(set_to_none=False)
                self.count = 0
                fut.set_result(self.model)
                self.waiting = torch.futures.Future()
        return fut


def trainer_loop(server_rref, seed):
    torch.manual_seed(seed)
    model = server_rref.rpc_sync().fetch()
    for _ in range(STEPS):
        x, y = torch.randn(32, 64), torch.randint(10, (32,))
        nn.functional.cross_entropy(model(x), y).backward()
        model = rpc.rpc_sync(server_rref.owner(), BatchUpdateServer.update,
                             args=(server_rref, [p.grad for p in model.parameters()]))


def run(rank, world):
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", "29511")
    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=16, rpc_timeout=0)
    if rank == 0:
        rpc.init_rpc("server", rank=rank, world_size=world, rpc_backend_options=options)
        rref = rpc.RRef(BatchUpdateServer(world - 1))
        done = [rpc.rpc_async(f"trainer{r}", trainer_loop, args=(rref, r)) for r in range(1, world)]
        torch.futures.wait_all(done)
    else:
        rpc.init_rpc(f"trainer{rank}", rank=rank, world_size=world, rpc_backend_options=options)
    rpc.shutdown()


if __name__ == "__main__":
    mp.spawn(run, args=(4,), nprocs=4, join=True)
