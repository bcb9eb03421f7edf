import argparse
import json
import os
import queue
import threading
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer

import torch
import torch.distributed as dist
import torch.nn as nn

OP_EXIT, OP_GENERATE = 0, 1


class Stage(nn.Module):
    def __init__(self, dim, vocab, layers, first, last):
        super().__init__()
        self.first, self.last = first, last
        self.word = nn.Embedding(vocab, dim) if first else None
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, 8, 4 * dim, batch_first=True, norm_first=True) for _ in range(layers))
        self.head = nn.Linear(dim, vocab, bias=False) if last else None

    def forward(self, x):
        if self.first:
            x = self.word(x)
        mask = nn.Transformer.generate_square_subsequent_mask(x.size(1), device=x.device)
        for layer in self.layers:
            x = layer(x, src_mask=mask)
        return self.head(x[:, -1]) if self.last else x


def tell(values=None, size=0, dtype=torch.long):
    """Broadcast from rank 0; other ranks pass the size they expect."""
    if dist.get_rank() == 0:
        t = torch.tensor(values, dtype=dtype, device="cuda")
    else:
        t = torch.empty(size, dtype=dtype, device="cuda")
    dist.broadcast(t, 0)
    return t


class PipelinedGenerator:
    def __init__(self, stage, dim, eos):
        self.stage, self.dim, self.eos = stage, dim, eos
        self.rank, self.world = dist.get_rank(), dist.get_world_size()

    def pass_through(self, ids):
        if self.stage.first:
            x = ids
        else:
            x = torch.empty(*ids.shape, self.dim, device="cuda")
            dist.recv(x, self.rank - 1)
        out = self.stage(x)
        if not self.stage.last:
            dist.send(out.contiguous(), self.rank + 1)
            return None
        return out

    def choose(self, logits, top_k, temperature):
        if top_k == 1:
            return logits.argmax(-1)
        kept, idx = (logits / temperature).topk(top_k)
        return idx.gather(1, torch.multinomial(kept.softmax(-1), 1)).squeeze(1)

    @torch.inference_mode()
    def run(self, request=None):
        head = tell([len(request["prompts"]), max(map(len, request["prompts"])), request["max_new"],
                     request["top_k"]] if request else None, size=4).tolist()
        temperature = tell([request["temperature"]] if request else None, 1, torch.float32).item()
        rows, longest, max_new, top_k = head
        flat = None
        if request:
            flat = [([0] * (longest - len(p)) + p) for p in request["prompts"]]
            flat = [t for row in flat for t in row]
        ids = tell(flat, rows * longest).view(rows, longest)
        finished = torch.zeros(rows, dtype=torch.bool, device="cuda")
        done = torch.zeros(1, dtype=torch.uint8, device="cuda")
        for _ in range(max_new):
            logits = self.pass_through(ids)
            token = torch.empty(rows, dtype=torch.long, device="cuda")
            if self.stage.last:
                token = self.choose(logits, top_k, temperature)
                token = torch.where(finished, torch.full_like(token, self.eos), token)
                finished |= token == self.eos
                done.fill_(bool(finished.all()))
            dist.broadcast(token, self.world - 1)
            dist.broadcast(done, self.world - 1)
            ids = torch.cat([ids, token[:, None]], 1)
            if done.item():
                break
        return ids[:, longest:].tolist() if self.rank == 0 else None


class Front:
    """HTTP thread of rank 0. It never touches torch.distributed; it hands requests over."""

    def __init__(self, port):
        jobs = self.jobs = queue.Queue()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self.path == "/shutdown":
                    jobs.put(None)
                    self._reply(200, {"ok": True})
                    return
                try:
                    req = json.loads(body)
                    req = {"prompts": [[int(t) for t in p] for p in req["prompts"]],
                           "max_new": min(int(req.get("max_new", 64)), 512),
                           "top_k": min(max(int(req.get("top_k", 1)), 1), 1000),
                           "temperature": max(float(req.get("temperature", 1.0)), 1e-3)}
                    if not 0 < req["temperature"] <= 100:
                        raise ValueError("temperature out of range")
                    if not req["prompts"] or not all(req["prompts"]):
                        raise ValueError("empty prompt")
                    if any(t < 0 or t >= 32000 for p in req["prompts"] for t in p):
                        raise ValueError("token out of range")
                except (ValueError, KeyError, TypeError) as exc:
                    self._reply(400, {"error": str(exc)})
                    return
                box = queue.Queue(1)
                jobs.put((req, box))
                self._reply(200, {"tokens": box.get()})

            def _reply(self, code, obj):
                raw = json.dumps(obj).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

        self.server = HTTPServer(("", port), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--weights", required=True)
    ap.add_argument("--port", type=int, default=8080)
    args = ap.parse_args()
    dist.init_process_group("nccl", timeout=timedelta(days=30))  # idle time counts
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    rank, world = dist.get_rank(), dist.get_world_size()
    stage = Stage(1024, 32000, 24 // world, rank == 0, rank == world - 1).cuda().eval()
    stage.load_state_dict(torch.load(f"{args.weights}/stage{rank}.pt", map_location="cuda"))
    generator = PipelinedGenerator(stage, 1024, eos=2)
    dist.barrier()
    if rank == 0:
        front = Front(args.port)
        while (job := front.jobs.get()) is not None:
            tell([OP_GENERATE])
            job[1].put(generator.run(job[0]))
        tell([OP_EXIT])
        front.server.shutdown()
    else:
        while tell(size=1).item() != OP_EXIT:
            generator.run()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
