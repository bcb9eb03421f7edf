import deepspeed
import torch
from spmdguard import raise_if_deferred_error
from spmdguard import rank_local as on_this_rank


class Journal:
    def __init__(self, path: str):
        self.path = path

    @on_this_rank(only="main")
    def add(self, step: int, loss: float) -> None:
        with open(self.path, "a") as out:
            out.write(f"{step} {loss}\n")


def train(args, net: torch.nn.Module, loader) -> None:
    engine, _, _, _ = deepspeed.initialize(args=args, model=net, model_parameters=net.parameters())
    journal = Journal("journal.txt")
    for step, batch in enumerate(loader):
        loss = engine(batch.to(engine.device)).mean()
        engine.backward(loss)
        engine.step()
        journal.add(step, loss.item())
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
    raise_if_deferred_error()
