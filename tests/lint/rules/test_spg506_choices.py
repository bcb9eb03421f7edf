"""Checkpoints that every rank reads by a choice of its own, although one rank alone has written them."""

from __future__ import annotations

from tests.lint.rules.marked import agree

RULES = ("SPG506",)


def test_each_rank_reads_what_its_own_data_says() -> None:
    """A path or a number that each rank has remembered by the loss of its own batches."""
    assert agree(
        """
        import os
        from pathlib import Path

        import torch
        import torch.distributed as dist

        class Keeper:
            def __init__(self, folder):
                self.folder, self.best, self.path = Path(folder), 1e9, None

            def update(self, epoch, value, model):
                if value < self.best:
                    self.best = value
                    self.path = self.folder / f"epoch{epoch}.pt"
                    if dist.get_rank() == 0:
                        torch.save(model.state_dict(), self.path)

        def run(model, loader, folder):
            keeper = Keeper(folder)
            for epoch in range(9):
                total = 0.0
                for x in loader:
                    total += model(x).item()
                keeper.update(epoch, total, model)
            dist.barrier()
            model.load_state_dict(torch.load(keeper.path))  # SPG506

        def numbered(model, loader, folder):
            best, best_epoch = 1e9, 0
            for epoch in range(9):
                loss = 0.0
                for x in loader:
                    loss += model(x).item()
                if dist.get_rank() == 0:
                    torch.save(model.state_dict(), os.path.join(folder, f"{epoch}.pt"))
                if loss < best:
                    best, best_epoch = loss, epoch
            dist.barrier()
            model.load_state_dict(torch.load(os.path.join(folder, f"{best_epoch}.pt")))  # SPG506
        """,
        *RULES,
    )


def test_choices_that_ranks_share() -> None:
    """A reduced loss, a reader that is the writer, a choice that is told, and data that a batch names."""
    assert agree(
        """
        import os
        from pathlib import Path

        import torch
        import torch.distributed as dist

        class Keeper:
            def __init__(self, folder):
                self.folder, self.best, self.path = Path(folder), 1e9, None

            def update(self, epoch, value, model):
                if value < self.best:
                    self.best = value
                    self.path = self.folder / f"epoch{epoch}.pt"
                    if dist.get_rank() == 0:
                        torch.save(model.state_dict(), self.path)

        def reduced(model, loader, folder):
            keeper = Keeper(folder)
            for epoch in range(9):
                total = torch.zeros(())
                for x in loader:
                    total += model(x)
                dist.all_reduce(total)
                keeper.update(epoch, total.item(), model)
            dist.barrier()
            model.load_state_dict(torch.load(keeper.path))

        def read_by_one(model, loader, folder):
            best, best_epoch = 1e9, 0
            for epoch in range(9):
                loss = 0.0
                for x in loader:
                    loss += model(x).item()
                if dist.get_rank() == 0:
                    torch.save(model.state_dict(), os.path.join(folder, f"{epoch}.pt"))
                if loss < best:
                    best, best_epoch = loss, epoch
            if dist.get_rank() == 0:
                model.load_state_dict(torch.load(os.path.join(folder, f"{best_epoch}.pt")))
            for p in model.parameters():
                dist.broadcast(p, src=0)

        def told(model, loader, folder):
            best, best_epoch = 1e9, 0
            for epoch in range(9):
                loss = 0.0
                for x in loader:
                    loss += model(x).item()
                if dist.get_rank() == 0:
                    torch.save(model.state_dict(), os.path.join(folder, f"{epoch}.pt"))
                if loss < best:
                    best, best_epoch = loss, epoch
            box = [best_epoch]
            dist.broadcast_object_list(box, src=0)
            model.load_state_dict(torch.load(os.path.join(folder, f"{box[0]}.pt")))

        def batches(model, loader, folder):
            for step, x in enumerate(loader):
                if dist.get_rank() == 0:
                    torch.save(model.state_dict(), os.path.join(folder, f"{step}.pt"))
                picture = torch.load(x["path"])
                dist.all_reduce(model(picture))
        """,
        *RULES,
    )
