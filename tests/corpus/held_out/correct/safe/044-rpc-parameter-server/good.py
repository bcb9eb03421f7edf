"""Asynchronous parameter server over torch RPC, with batched updates."""
import argparse
import threading

import torch
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp
import torch.nn as nn

SERVER = "ps"


def make_net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 1))


class ParameterServer:
    """Gathers `update_size` gradients, then answers all who wait with fresh weights."""

    def __init__(self, update_size, lr):
        self.net = make_net()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=lr, momentum=0.9)
        self.lock = threading.Lock()
        self.update_size = update_size
        self.pending = 0
        self.future = torch.futures.Future()
        self.updates = 0
        for p in self.net.parameters():
            p.grad = torch.zeros_like(p)

    def weights(self):
        with self.lock:
            return {k: v.clone() for k, v in self.net.state_dict().items()}

    def count(self):
        return self.updates

    @staticmethod
    @rpc.functions.async_execution
    def push(server_rref, grads):
        self = server_rref.local_value()
        with self.lock:
            for p, g in zip(self.net.parameters(), grads):
                p.grad += g
            self.pending += 1
            answer = self.future
            if self.pending >= self.update_size:
                for p in self.net.parameters():
                    p.grad /= self.update_size
                self.optimizer.step()
                for p in self.net.parameters():
                    p.grad.zero_()
                self.pending = 0
                self.updates += 1
                self.future = torch.futures.Future()
                answer.set_result({k: v.clone() for k, v in self.net.state_dict().items()})
        return answer


class Worker:
    def __init__(self, server_rref, seed):
        self.server, self.net = server_rref, make_net()
        self.gen = torch.Generator().manual_seed(seed)

    def batch(self):
        x = torch.randn(32, 10, generator=self.gen)
        return x, x.prod(1, keepdim=True).tanh()

    def run(self, steps):
        self.net.load_state_dict(self.server.rpc_sync().weights())
        loss = torch.zeros(())
        for step in range(steps):
            x, y = self.batch()
            loss = nn.functional.mse_loss(self.net(x), y)
            self.net.zero_grad()
            loss.backward()
            grads = [p.grad for p in self.net.parameters()]
            fresh = rpc.rpc_sync(self.server.owner(), ParameterServer.push, args=(self.server, grads))
            self.net.load_state_dict(fresh)
            if step % 50 == 0:
                print(f"{rpc.get_worker_info().name} step {step}: {loss.item():.4f}", flush=True)
        return loss.item()


def work(server_rref, seed, steps):
    """Runs on a worker, asked for by the server."""
    return Worker(server_rref, seed).run(steps)


def serve(workers, steps, lr):
    server = ParameterServer(update_size=len(workers), lr=lr)
    rref = rpc.RRef(server)
    # every worker pushes `steps` times, so each update fills up with one push of each
    futures = [rpc.rpc_async(name, work, args=(rref, i, steps), timeout=0) for i, name in enumerate(workers)]
    losses = torch.futures.wait_all(futures)
    assert server.count() == steps
    print(f"{steps} updates, last losses {[round(v, 4) for v in losses]}")
    torch.save(server.weights(), "ps.pt")


def run(rank, args):
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"tcp://{args.host}:{args.port}", rpc_timeout=300,
                                              num_worker_threads=32)
    workers = [f"worker{i}" for i in range(1, args.world_size)]
    name = SERVER if rank == 0 else f"worker{rank}"
    rpc.init_rpc(name, rank=rank, world_size=args.world_size, rpc_backend_options=options)
    if rank == 0:
        serve(workers, args.steps, args.lr)
    # graceful by default: it waits until every peer has no work left
    rpc.shutdown()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--world-size", type=int, default=4)
    ap.add_argument("--steps", type=int, default=300)
    ap.add_argument("--lr", type=float, default=0.02)
    ap.add_argument("--host", default="127.0.0.1")
    ap.add_argument("--port", type=int, default=29544)
    args = ap.parse_args()
    mp.spawn(run, args=(args,), nprocs=args.world_size, join=True)


if __name__ == "__main__":
    main()
