import argparse
import json
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from transformers import BertConfig, BertModel


class BertBenchmark:
    def __init__(self, args):
        self.args = args
        self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(self.device)
        self.step_times = []

    def setup(self):
        config = BertConfig(hidden_size=self.args.hidden, num_hidden_layers=self.args.layers)
        body = BertModel(config, add_pooling_layer=False).to(self.device)
        self.model = DDP(body, device_ids=[self.device.index])
        self.head = nn.Linear(self.args.hidden, 100).to(self.device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-5)
        self.ids = torch.randint(0, 30000, (self.args.batch, self.args.seq_len), device=self.device)
        self.target = torch.randint(0, 100, (self.args.batch,), device=self.device)

    def is_finished(self, step, started):
        if self.args.duration > 0 and time.time() - started >= self.args.duration:
            return True
        return 0 < self.args.steps <= step

    def run(self):
        step, started = 0, time.time()
        while not self.is_finished(step, started):
            torch.cuda.synchronize()
            begin = time.time()
            pooled = self.model(input_ids=self.ids).last_hidden_state[:, 0]
            loss = nn.functional.cross_entropy(self.head(pooled), self.target)
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            torch.cuda.synchronize()
            self.step_times.append((time.time() - begin) * 1000)
            step += 1
        return step

    def report(self, steps):
        mean = torch.tensor(sum(self.step_times) / max(len(self.step_times), 1), device=self.device)
        dist.all_reduce(mean)
        if dist.get_rank() == 0:
            print(json.dumps({"steps": steps, "step_ms": mean.item() / dist.get_world_size()}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name, default in (("hidden", 768), ("layers", 12), ("batch", 32), ("seq_len", 128), ("steps", 0), ("duration", 120)):
        parser.add_argument(f"--{name}", type=int, default=default)
    dist.init_process_group("nccl")
    bench = BertBenchmark(parser.parse_args())
    bench.setup()
    bench.report(bench.run())
    dist.destroy_process_group()
