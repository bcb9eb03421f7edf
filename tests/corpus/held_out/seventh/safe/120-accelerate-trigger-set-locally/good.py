import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset


def train(args_lr=0.05, epochs=4):
    accelerator = Accelerator()
    data = TensorDataset(torch.randn(64, 6), torch.randn(64, 1))
    model = torch.nn.Linear(6, 1)
    opt = torch.optim.SGD(model.parameters(), lr=args_lr)
    model, opt, loader = accelerator.prepare(model, opt, DataLoader(data, batch_size=8))
    stopped = False
    for epoch in range(epochs):
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(model(x), y)
            accelerator.backward(loss)
            opt.step()
            opt.zero_grad()
            if not torch.isfinite(loss) or loss.item() < 0.05:
                accelerator.set_trigger()
            if accelerator.check_trigger():
                stopped = True
                break
        if stopped:
            break
    accelerator.wait_for_everyone()
    state = accelerator.get_state_dict(model)
    if accelerator.is_main_process:
        torch.save(state, "model.pt")
        print("stopped early" if stopped else "ran to the end")
    accelerator.end_training()


if __name__ == "__main__":
    train()
