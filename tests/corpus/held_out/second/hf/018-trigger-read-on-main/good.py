import math

from accelerate import Accelerator


def guard(accelerator, loss):
    if not math.isfinite(loss):
        accelerator.set_trigger()


def fit(model, optimizer, scheduler, loader, epochs, out):
    accelerator = Accelerator(gradient_accumulation_steps=4)
    model, optimizer, scheduler, loader = accelerator.prepare(model, optimizer, scheduler, loader)
    for epoch in range(epochs):
        model.train()
        for batch in loader:
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                guard(accelerator, loss.item())
                accelerator.backward(loss)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            if accelerator.check_trigger():
                accelerator.print(f"loss left the finite range in epoch {epoch}")
                return
    accelerator.wait_for_everyone()
    accelerator.save_model(model, out)
