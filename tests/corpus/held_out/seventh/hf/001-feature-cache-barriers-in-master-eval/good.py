import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


def load_features(args, build, split, alone=False):
    if args.local_rank > 0 and not alone:
        dist.barrier()
    cache = os.path.join(args.data_dir, f"{split}_{args.max_len}.pt")
    if os.path.exists(cache):
        features = torch.load(cache)
    else:
        features = build(split)
        if args.local_rank in (-1, 0):
            torch.save(features, cache)
    if args.local_rank == 0 and not alone:
        dist.barrier()
    return features


def evaluate(args, net, build):
    loader = DataLoader(load_features(args, build, "dev", alone=True), batch_size=args.eval_batch)
    with torch.no_grad():
        return sum(net(**batch).loss.item() for batch in loader) / len(loader)


def main(args, net, opt, build):
    if args.local_rank != -1:
        torch.cuda.set_device(args.local_rank)
        dist.init_process_group("nccl")
    data = load_features(args, build, "train")
    sampler = DistributedSampler(data) if args.local_rank != -1 else None
    model = DDP(net, device_ids=[args.local_rank]) if args.local_rank != -1 else net
    for batch in DataLoader(data, batch_size=args.batch, sampler=sampler):
        model(**batch).loss.backward()
        opt.step()
        opt.zero_grad()
    if args.local_rank in (-1, 0):
        print("dev loss", evaluate(args, net, build))
