"""Score a model on several tasks, the documents split over the processes.

Exit status 0 if all documents were scored, 3 if some could not be.
"""

import argparse
import json
import os
import sys
import traceback
from collections import Counter, defaultdict
from datetime import timedelta

import torch
import torch.distributed as dist

TASKS = {}


def task(name):
    def register(fn):
        TASKS[name] = fn
        return fn

    return register


@task("copy")
def copy_task(model, doc):
    return {"exact": float(model(doc["text"]) == doc["text"])}


@task("length")
def length_task(model, doc):
    answer = model(doc["text"])
    result = {"ratio": len(answer) / max(len(doc["text"]), 1)}
    if doc["text"].isdigit():
        result["digits"] = float(answer.isdigit())
    return result


class Echo:
    def __call__(self, text):
        if "\0" in text:
            raise ValueError("document has a NUL character")
        return text[:40]


def load_docs(path, limit):
    if path is None:
        docs = [{"text": "abc " * i} for i in range(limit)]
        docs += [{"text": str(i)} for i in range(limit // 3)]
        return docs
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f][:limit]


def shared_docs(path, limit):
    """Read once on rank 0; the reading error, if any, is everybody's."""
    box = [None]
    if dist.get_rank() == 0:
        try:
            box[0] = ("docs", load_docs(path, limit))
        except (OSError, ValueError) as exc:
            box[0] = ("error", f"{type(exc).__name__}: {exc}")
    dist.broadcast_object_list(box, src=0)
    kind, value = box[0]
    if kind == "error":
        raise SystemExit(f"cannot read {path}: {value}")
    return value


class Tally:
    def __init__(self):
        self.sums, self.counts = defaultdict(float), Counter()
        self.failures = []

    def add(self, metrics):
        for name, value in metrics.items():
            self.sums[name] += value
            self.counts[name] += 1

    def merge(self):
        """Means over all ranks for the union of the metric names."""
        seen = [None] * dist.get_world_size()
        dist.all_gather_object(seen, sorted(self.counts))
        names = sorted({name for part in seen for name in part})
        if not names:
            return {}
        table = torch.zeros(len(names), 2, dtype=torch.float64)
        for i, name in enumerate(names):
            if name not in self.counts:
                continue
            table[i, 0], table[i, 1] = self.sums[name], self.counts[name]
        dist.all_reduce(table)
        return {name: (row[0] / row[1]).item() for name, row in zip(names, table)}


def score(fn, model, docs):
    """Our part of the documents; a bad document costs only itself."""
    rank, world = dist.get_rank(), dist.get_world_size()
    tally, samples = Tally(), []
    for index in range(rank, len(docs), world):
        try:
            metrics = fn(model, docs[index])
        except Exception:
            tally.failures.append((index, traceback.format_exc(limit=1)))
            continue
        tally.add(metrics)
        samples.append((index, metrics))
    return tally, samples


def collect(samples):
    """All samples in the order of the documents, on rank 0 only."""
    parts = [None] * dist.get_world_size() if dist.get_rank() == 0 else None
    dist.gather_object(samples, parts, dst=0)
    if parts is None:
        return []
    return sorted((s for part in parts for s in part), key=lambda s: s[0])


def run_tasks(names, model, docs, keep_samples):
    report, dumped = {}, {}
    for name in names:
        tally, samples = score(TASKS[name], model, docs)
        means = tally.merge()
        failed = torch.tensor([len(tally.failures)])
        dist.all_reduce(failed)
        if failed.item() and tally.failures:
            print(f"rank {dist.get_rank()} {name}: {tally.failures[0][1]}", file=sys.stderr)
        if keep_samples:
            dumped[name] = collect(samples)
        report[name] = {"metrics": means, "failed": int(failed.item())}
        if not means:
            # not one document worked, on any rank: the model is broken
            break
    return report, dumped


def write(folder, report, dumped):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "report.json"), "w", encoding="utf-8") as f:
        json.dump(report, f, indent=1, sort_keys=True)
    for name, rows in dumped.items():
        with open(os.path.join(folder, f"{name}.jsonl"), "w", encoding="utf-8") as f:
            for index, metrics in rows:
                f.write(json.dumps({"doc": index, **metrics}) + "\n")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--docs")
    p.add_argument("--tasks", nargs="+", default=sorted(TASKS), choices=sorted(TASKS))
    p.add_argument("--limit", type=int, default=50)
    p.add_argument("--samples", action="store_true")
    p.add_argument("--out", default="bench")
    args = p.parse_args()

    dist.init_process_group("gloo", timeout=timedelta(hours=2))
    rank = dist.get_rank()
    docs = shared_docs(args.docs, args.limit)
    report, dumped = run_tasks(args.tasks, Echo(), docs, args.samples)
    dist.barrier()
    dist.destroy_process_group()

    if rank == 0:
        write(args.out, report, dumped)
        print(json.dumps(report))
    if any(entry["failed"] for entry in report.values()):
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
