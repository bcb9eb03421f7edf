import torch
from accelerate import Accelerator


class Classifier:
    def __init__(self, net, opt, train_loader, val_loader):
        self.acc = Accelerator(gradient_accumulation_steps=2)
        self.net, self.opt, self.train_loader, self.val_loader = self.acc.prepare(
            net, opt, train_loader, val_loader
        )
        self.criterion = torch.nn.CrossEntropyLoss()

    def fit_epoch(self):
        self.net.train()
        for images, target in self.train_loader:
            with self.acc.accumulate(self.net):
                self.acc.backward(self.criterion(self.net(images), target))
                self.opt.step()
                self.opt.zero_grad()

    @torch.no_grad()
    def validate(self):
        self.net.eval()
        hits, seen = 0, 0
        for images, target in self.val_loader:
            guess = self.net(images).argmax(-1)
            guess, target = self.acc.gather_for_metrics((guess, target))
            if self.acc.is_main_process:
                hits += (guess == target).sum().item()
                seen += target.numel()
        return hits / max(seen, 1)


def run(net, opt, train_loader, val_loader, epochs=10):
    job = Classifier(net, opt, train_loader, val_loader)
    for epoch in range(epochs):
        job.fit_epoch()
        top1 = job.validate()
        job.acc.print(f"epoch {epoch}: top1={top1:.3f}")
