import argparse
import json
from collections import defaultdict

import torch
import torch.distributed as dist

METRICS = {}


def register(name):
    def wrap(fn):
        METRICS[name] = fn
        return fn
    return wrap


@register("exact")
def exact(doc, pred):
    return float(doc["answer"].strip() == pred.strip())


@register("contains")
def contains(doc, pred):
    return float(doc["answer"] in pred)


def metrics_for(doc):
    # docs carry their own list, e.g. counting questions have only "exact"
    return {name: METRICS[name] for name in doc["metrics"]}


class Evaluator:
    def __init__(self, model, docs):
        self.model = model
        self.docs = docs
        self.rank = dist.get_rank()
        self.world = dist.get_world_size()

    def run_local(self):
        scores = defaultdict(list)
        for doc in self.docs[self.rank :: self.world]:
            pred = self.model.generate(doc["question"])
            for name, fn in metrics_for(doc).items():
                scores[name].append(fn(doc, pred))
        return scores

    def collect(self, scores):
        merged = {}
        known = [None] * self.world
        dist.all_gather_object(known, list(scores))
        for name in sorted({k for keys in known for k in keys}):
            values = scores.get(name, [])
            bucket = [None] * self.world if self.rank == 0 else None
            dist.gather_object(values, bucket, dst=0)
            if self.rank == 0:
                flat = [v for part in bucket for v in part]
                merged[name] = sum(flat) / max(len(flat), 1)
        return merged


def main(load_model):
    ap = argparse.ArgumentParser()
    ap.add_argument("--docs", required=True)
    ap.add_argument("--out", default="results.json")
    args = ap.parse_args()
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    with open(args.docs) as f:
        docs = [json.loads(line) for line in f]
    ev = Evaluator(load_model(), docs)
    merged = ev.collect(ev.run_local())
    if dist.get_rank() == 0:
        with open(args.out, "w") as f:
            json.dump(merged, f, indent=2)
    dist.barrier()
    dist.destroy_process_group()
