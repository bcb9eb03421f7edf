import torch
from accelerate import Accelerator


def accuracy(accelerator, net, loader):
    net.eval()
    right = seen = 0
    for images, labels in loader:
        with torch.inference_mode():
            guess = net(images).argmax(dim=-1)
        if accelerator.is_main_process:
            guess, labels = accelerator.gather_for_metrics((guess, labels))
            right += (guess == labels).sum().item()
            seen += labels.numel()
    net.train()
    return right / max(seen, 1)


def main(net, opt, train_loader, test_loader, epochs=10):
    accelerator = Accelerator(gradient_accumulation_steps=2)
    net, opt, train_loader, test_loader = accelerator.prepare(net, opt, train_loader, test_loader)
    for epoch in range(epochs):
        for images, labels in train_loader:
            with accelerator.accumulate(net):
                loss = torch.nn.functional.cross_entropy(net(images), labels)
                accelerator.backward(loss)
                opt.step()
                opt.zero_grad()
        acc = accuracy(accelerator, net, test_loader)
        accelerator.print(f"epoch {epoch}: {acc:.3f}")
