import logging
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def run_epoch(model, opt):
    for _ in range(5):
        opt.zero_grad()
        model(torch.randn(8, 3)).pow(2).mean().backward()
        opt.step()


def valid_loss(model, epoch):
    with torch.no_grad():
        return model(torch.ones(4, 3)).abs().mean().item() + 0.1 * epoch


def train(model, opt, max_epochs, patience):
    rank = dist.get_rank()
    lowest, waited = float("inf"), 0
    for epoch in range(max_epochs):
        run_epoch(model, opt)
        if rank == 0:
            loss = valid_loss(model.module, epoch)
            logging.info("epoch %d: loss %.4f", epoch, loss)
            if loss < lowest:
                lowest, waited = loss, 0
            else:
                waited += 1
            if waited >= patience:
                logging.info("no progress for %d epochs, stopping", waited)
                break


def main():
    logging.basicConfig(level=logging.INFO)
    dist.init_process_group("gloo", timeout=timedelta(seconds=30))
    model = DDP(torch.nn.Linear(3, 3))
    train(model, torch.optim.Adam(model.parameters()), max_epochs=50, patience=3)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
