import math

import torch
from accelerate import Accelerator


def fit(model, opt, sched, loader, epochs, ceiling=20.0):
    accelerator = Accelerator(gradient_accumulation_steps=4)
    model, opt, sched, loader = accelerator.prepare(model, opt, sched, loader)
    stopped = False
    for epoch in range(epochs):
        for batch in loader:
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
                sched.step()
                opt.zero_grad()
            value = loss.item()
            if math.isnan(value) or value > ceiling:
                accelerator.set_trigger()
                if accelerator.check_trigger():
                    stopped = True
                    break
        if stopped:
            accelerator.print(f"stopped in epoch {epoch}")
            break
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        torch.save(accelerator.unwrap_model(model).state_dict(), "last.pt")
