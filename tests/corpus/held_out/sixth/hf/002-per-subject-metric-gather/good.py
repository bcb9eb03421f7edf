import argparse
import itertools
import json
import os
from collections import defaultdict

import torch
import torch.distributed as dist

from evalkit.models import load_vlm
from evalkit.tasks import load_task


def score_document(task, doc, answer):
    """One entry per metric; the subject is part of the name."""
    exact = float(answer.strip().lower() == doc["answer"].strip().lower())
    result = {f"exact/{doc['subject']}": exact}
    if doc.get("choices"):
        result[f"choice/{doc['subject']}"] = float(task.parse_choice(answer) == doc["gold"])
    return result


def run(task, model, rank, world):
    samples = defaultdict(list)
    for doc_id, doc in itertools.islice(enumerate(task.docs()), rank, None, world):
        answer = model.generate(doc["image"], doc["question"], max_new_tokens=64)
        for name, value in score_document(task, doc, answer).items():
            samples[name].append((doc_id, value))
    return samples


def collect(samples, rank, world):
    merged = {}
    per_rank = [None] * world
    dist.all_gather_object(per_rank, sorted(samples))
    for name in sorted(set(itertools.chain.from_iterable(per_rank))):
        values = samples.get(name, [])
        bucket = [None] * world if rank == 0 else None
        dist.gather_object(values, bucket, dst=0)
        if rank == 0:
            flat = sorted(itertools.chain.from_iterable(bucket))
            merged[name] = sum(v for _, v in flat) / max(len(flat), 1)
    return merged


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--task", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--output", default="results.json")
    args = parser.parse_args()

    dist.init_process_group("nccl")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    task = load_task(args.task)
    model = load_vlm(args.model).cuda().eval()
    with torch.inference_mode():
        samples = run(task, model, rank, world)
    merged = collect(samples, rank, world)
    if rank == 0:
        with open(args.output, "w") as f:
            json.dump(merged, f, indent=2, sort_keys=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
