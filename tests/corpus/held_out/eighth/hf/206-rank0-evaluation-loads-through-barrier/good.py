import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from transformers import AutoModelForSequenceClassification, AutoTokenizer


def load_examples(args, tokenizer, split):
    shared = split == "train"  # the dev split is read by the first process only
    if shared and args.local_rank not in (-1, 0):
        dist.barrier()  # the first process builds the cache
    cached = os.path.join(args.data_dir, f"{split}.features.pt")
    if os.path.exists(cached):
        ids, labels = torch.load(cached)
    else:
        with open(os.path.join(args.data_dir, f"{split}.tsv")) as fh:
            rows = [line.rstrip("\n").split("\t") for line in fh]
        ids = tokenizer([r[0] for r in rows], padding="max_length", truncation=True,
                        max_length=128, return_tensors="pt")["input_ids"]
        labels = torch.tensor([int(r[1]) for r in rows])
        torch.save((ids, labels), cached)
    if shared and args.local_rank == 0:
        dist.barrier()
    return TensorDataset(ids, labels)


def train(args, model, dataset):
    sampler = DistributedSampler(dataset) if args.local_rank != -1 else None
    loader = DataLoader(dataset, batch_size=16, sampler=sampler, drop_last=True)
    net = DDP(model) if args.local_rank != -1 else model
    opt = torch.optim.AdamW(net.parameters(), lr=2e-5)
    for ids, labels in loader:
        net(input_ids=ids, labels=labels).loss.backward()
        opt.step()
        opt.zero_grad()


def evaluate(args, model, tokenizer):
    dataset = load_examples(args, tokenizer, "dev")
    right = 0
    with torch.no_grad():
        for ids, labels in DataLoader(dataset, batch_size=32):
            right += (model(input_ids=ids).logits.argmax(-1) == labels).sum().item()
    return right / len(dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data_dir", required=True)
    args = parser.parse_args()
    args.local_rank = int(os.environ.get("LOCAL_RANK", -1))
    if args.local_rank != -1:
        dist.init_process_group("gloo")
    tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
    model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased")
    train(args, model, load_examples(args, tokenizer, "train"))
    if args.local_rank in (-1, 0):
        print("accuracy", evaluate(args, model, tokenizer))


if __name__ == "__main__":
    main()
