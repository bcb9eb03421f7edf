import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader

EPOCHS = 50
ACCUMULATE = 2
BATCH = 128


def build(net, train_set, test_set):
    accelerator = Accelerator(gradient_accumulation_steps=ACCUMULATE)
    micro = BATCH // ACCUMULATE
    train_loader = DataLoader(train_set, batch_size=micro, shuffle=True, num_workers=8, pin_memory=True)
    test_loader = DataLoader(test_set, batch_size=micro, num_workers=8)
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    return accelerator, *accelerator.prepare(net, opt, train_loader, test_loader)


def test_accuracy(accelerator, net, loader):
    net.eval()
    hits = total = 0
    for images, targets in loader:
        with torch.no_grad():
            guess = net(images).argmax(1)
        if accelerator.is_main_process:
            guess, targets = accelerator.gather_for_metrics((guess, targets))
            hits += (guess == targets).sum().item()
            total += targets.numel()
    return hits / max(total, 1)


def main(net, train_set, test_set):
    accelerator, net, opt, train_loader, test_loader = build(net, train_set, test_set)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(EPOCHS):
        net.train()
        for images, targets in train_loader:
            with accelerator.accumulate(net):
                accelerator.backward(loss_fn(net(images), targets))
                opt.step()
                opt.zero_grad()
        accelerator.print(epoch, test_accuracy(accelerator, net, test_loader))
