from dataclasses import asdict, dataclass, replace

import torch
import wandb
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list


@dataclass(frozen=True)
class Settings:
    epochs: int = 5
    lr: float = 1e-3
    width: int = 64


def resolve(accelerator: Accelerator, base: Settings) -> Settings:
    if accelerator.is_main_process:
        run = wandb.init(project="sweep", config=asdict(base))
        base = replace(base, epochs=run.config["epochs"], lr=run.config["lr"])
    return broadcast_object_list([base], from_process=0)[0]


def trial(build, loader) -> None:
    accelerator = Accelerator()
    settings = resolve(accelerator, Settings())
    net = build(settings.width)
    optimizer = torch.optim.AdamW(net.parameters(), lr=settings.lr)
    net, optimizer, loader = accelerator.prepare(net, optimizer, loader)
    for epoch in range(settings.epochs):
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(net(x), y)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        if accelerator.is_main_process:
            wandb.log({"epoch": epoch, "loss": loss.item()})
    if accelerator.is_main_process:
        wandb.finish()
