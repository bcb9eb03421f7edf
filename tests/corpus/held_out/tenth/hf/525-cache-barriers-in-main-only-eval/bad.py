import os
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, SequentialSampler


def load_examples(args, task, evaluate=False):
    if args.local_rank not in (-1, 0):
        dist.barrier()  # the first process builds the cache
    part = "dev" if evaluate else "train"
    cached = os.path.join(args.data_dir, f"cached_{part}_{task.name}_{args.max_len}")
    if os.path.exists(cached):
        features = torch.load(cached)
    else:
        features = task.featurize(part, args.max_len)
        if args.local_rank in (-1, 0):
            torch.save(features, cached)
    if args.local_rank == 0:
        dist.barrier()
    return task.as_dataset(features)


def train(args, task, model, opt):
    data = load_examples(args, task)
    sampler = DistributedSampler(data)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for batch in DataLoader(data, sampler=sampler, batch_size=args.batch_size):
            model(**batch).loss.backward()
            opt.step()
            opt.zero_grad()


def evaluate(args, task, net):
    data = load_examples(args, task, evaluate=True)
    loader = DataLoader(data, sampler=SequentialSampler(data), batch_size=args.batch_size)
    with torch.no_grad():
        return task.metrics([net(**batch).logits.cpu() for batch in loader])


def main(args, task, net, opt):
    dist.init_process_group("nccl")
    ddp = torch.nn.parallel.DistributedDataParallel(net, device_ids=[args.local_rank])
    train(args, task, ddp, opt)
    if args.local_rank in (-1, 0):
        print(evaluate(args, task, net))
