import argparse

import torch
import torch.distributed as dist
from loguru import logger
from torch.nn.parallel import DistributedDataParallel as DDP


def make_parser():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", required=True)
    parser.add_argument("--epochs", type=int, default=300)
    return parser


@logger.catch(reraise=True)
def main(args, build):
    dist.init_process_group("nccl")
    local = dist.get_rank() % torch.cuda.device_count()
    torch.cuda.set_device(local)
    net, loader = build(args.config)
    model = DDP(net.cuda(), device_ids=[local])
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for epoch in range(args.epochs):
        loader.sampler.set_epoch(epoch)
        for images, targets in loader:
            loss = model(images.cuda(), targets)
            loss.backward()
            opt.step()
            opt.zero_grad()
        logger.info("epoch {} loss {:.4f}", epoch, loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    from experiment import build

    main(make_parser().parse_args(), build)
