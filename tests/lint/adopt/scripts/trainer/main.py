"""Builds the parts and starts the trainer."""

import sys

import torch
from torch.distributed import destroy_process_group, init_process_group
from trainer import Trainer


def build():
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return model, optimizer, [torch.randn(4, 8) for _ in range(3)]


def main(folder):
    init_process_group(backend="gloo")
    model, optimizer, data = build()
    trainer = Trainer(model, optimizer, data, folder)
    trainer.train(num_epochs=3)
    destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
