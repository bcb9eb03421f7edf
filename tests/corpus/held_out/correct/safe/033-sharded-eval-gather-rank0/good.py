"""Evaluate question answering over ranks: uneven shards, one gather, one score."""
import argparse
import collections
import json
import os
import re
import string
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset, Sampler
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer


class Questions(Dataset):
    def __init__(self, path):
        self.items = [json.loads(s) for s in Path(path).read_text().splitlines() if s.strip()]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return {"index": i, **self.items[i]}


class StridedSampler(Sampler):
    """No padding: nothing is judged twice, and shards differ by one sample at most."""

    def __init__(self, n, rank, world):
        self.mine = range(rank, n, world)

    def __iter__(self):
        return iter(self.mine)

    def __len__(self):
        return len(self.mine)


def normalise(text):
    text = "".join(c for c in text.lower() if c not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def f1(pred, gold):
    p, g = normalise(pred).split(), normalise(gold).split()
    same = sum((collections.Counter(p) & collections.Counter(g)).values())
    if same == 0:
        return 0.0
    precision, recall = same / len(p), same / len(g)
    return 2 * precision * recall / (precision + recall)


@torch.inference_mode()
def predict(model, tokenizer, loader, device, max_new):
    answers = {}
    for batch in loader:
        prompts = [f"question: {row['question']} context: {row['context']}" for row in batch]
        enc = tokenizer(prompts, return_tensors="pt", padding=True, truncation=True, max_length=512).to(device)
        out = model.generate(**enc, max_new_tokens=max_new, num_beams=2)
        for row, text in zip(batch, tokenizer.batch_decode(out, skip_special_tokens=True)):
            answers[row["index"]] = text
    return answers


def collect(answers):
    """Merged answers on rank 0, None on the others."""
    rank, world = dist.get_rank(), dist.get_world_size()
    pieces = [None] * world if rank == 0 else None
    dist.gather_object(answers, pieces, dst=0)
    if rank != 0:
        return None
    merged = {}
    for piece in pieces:
        merged.update(piece)
    return merged


def judge(questions, merged, out_path):
    missing = set(range(len(questions))) - merged.keys()
    assert not missing, f"no answer for {sorted(missing)[:5]}"
    scores = [max(f1(merged[i], g) for g in questions[i]["answers"]) for i in range(len(questions))]
    with open(out_path, "w") as f:
        for i, s in enumerate(scores):
            f.write(json.dumps({"index": i, "prediction": merged[i], "f1": round(s, 4)}) + "\n")
    return sum(scores) / len(scores)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--model", default="t5-small")
    ap.add_argument("--data", required=True)
    ap.add_argument("--out", default="predictions.jsonl")
    ap.add_argument("--batch-size", type=int, default=16)
    args = ap.parse_args()

    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local) if torch.cuda.is_available() else torch.device("cpu")
    # generation speed differs between shards, hence the long timeout
    dist.init_process_group("gloo", timeout=timedelta(hours=3))
    rank, world = dist.get_rank(), dist.get_world_size()

    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = AutoModelForSeq2SeqLM.from_pretrained(args.model).to(device).eval()
    questions = Questions(args.data)
    loader = DataLoader(questions, args.batch_size, sampler=StridedSampler(len(questions), rank, world),
                        collate_fn=list)
    merged = collect(predict(model, tokenizer, loader, device, max_new=32))
    score = torch.zeros(1)
    if merged is not None:
        score[0] = judge(questions, merged, args.out)
    dist.broadcast(score, src=0)
    print(f"[{rank}] F1 {score.item():.4f}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
