"""Sharded-model inference: rank 0 takes prompts from stdin and leads the others."""
import argparse
import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

STOP, GENERATE, STATS = "stop", "generate", "stats"


class HalfMlp(nn.Module):
    """Hidden units split over ranks; partial outputs are summed."""

    def __init__(self, d, hidden):
        super().__init__()
        world, rank = dist.get_world_size(), dist.get_rank()
        assert hidden % world == 0
        g = torch.Generator().manual_seed(hidden)
        up = torch.randn(hidden, d, generator=g) / d ** 0.5
        down = torch.randn(d, hidden, generator=g) / hidden ** 0.5
        self.register_buffer("up", up.chunk(world, 0)[rank].clone())
        self.register_buffer("down", down.chunk(world, 1)[rank].clone())

    def forward(self, x):
        y = F.linear(F.gelu(F.linear(x, self.up)), self.down)
        dist.all_reduce(y)
        return x + y


class ByteModel(nn.Module):
    def __init__(self, d=256, depth=4):
        super().__init__()
        self.emb = nn.Embedding(256, d)
        self.mix = nn.GRU(d, d, batch_first=True)
        self.mlps = nn.ModuleList(HalfMlp(d, 4 * d) for _ in range(depth))
        self.out = nn.Linear(d, 256)

    def forward(self, ids):
        h, _ = self.mix(self.emb(ids))
        for m in self.mlps:
            h = m(h)
        return self.out(h[:, -1])


class Engine:
    def __init__(self, device):
        self.device = device
        torch.manual_seed(0)
        self.model = ByteModel().to(device).eval()
        for p in self.model.parameters():
            dist.broadcast(p.data, src=0)
        self.served = 0

    @torch.inference_mode()
    def generate(self, prompt, max_new, temperature, seed):
        ids = torch.tensor([list(prompt.encode()) or [32]], device=self.device)
        gen = torch.Generator(device=self.device).manual_seed(seed)
        for _ in range(max_new):
            logits = self.model(ids)
            # the draw is rank 0's, so that rounding can't make the ranks part
            if temperature > 0:
                token = torch.multinomial((logits / temperature).softmax(-1), 1, generator=gen)
            else:
                token = logits.argmax(-1, keepdim=True)
            dist.broadcast(token, src=0)
            ids = torch.cat([ids, token], 1)
            if token.item() == 10:
                break
        self.served += 1
        return bytes(ids[0].tolist()).decode(errors="replace")

    def stats(self):
        used = torch.cuda.memory_allocated(self.device) / 2**20 if self.device.type == "cuda" else 0.0
        rows = [None] * dist.get_world_size()
        dist.all_gather_object(rows, {"rank": dist.get_rank(), "served": self.served, "MiB": round(used, 1)})
        return rows

    def dispatch(self, command):
        """Same call on every rank for one command."""
        kind, payload = command
        if kind == GENERATE:
            return self.generate(**payload)
        if kind == STATS:
            return self.stats()
        raise ValueError(kind)


def send(command):
    dist.broadcast_object_list([command], src=0)


def receive():
    box = [None]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def parse(line, args, number):
    if line == "/stats":
        return STATS, {}
    return GENERATE, {"prompt": line[:args.max_prompt], "max_new": args.max_new,
                      "temperature": args.temperature, "seed": number}


def lead(engine, args, source):
    for number, line in enumerate(source):
        line = line.strip()
        if line == "/quit":
            break
        if not line:
            continue
        command = parse(line, args, number)
        send(command)
        print(engine.dispatch(command), flush=True)
    send((STOP, None))


def follow(engine):
    while True:
        command = receive()
        if command[0] == STOP:
            return
        engine.dispatch(command)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--max-new", type=int, default=64)
    ap.add_argument("--max-prompt", type=int, default=2000)
    ap.add_argument("--temperature", type=float, default=0.8)
    args = ap.parse_args()
    cuda = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    # followers wait for a person to type, so the limit is a whole day
    dist.init_process_group("nccl" if cuda else "gloo", timeout=timedelta(days=1))
    engine = Engine(device)
    if dist.get_rank() == 0:
        lead(engine, args, sys.stdin)
    else:
        follow(engine)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
