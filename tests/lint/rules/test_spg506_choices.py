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


def test_checkpoints_to_go_on_from_under_a_drawn_name() -> None:
    """A random name for each rank makes some of them find a checkpoint and others none; the name of one is for all."""
    assert agree(
        """
        import os
        import random
        import secrets
        import time
        import uuid
        import deepspeed
        import torch.distributed as dist
        from accelerate import Accelerator
        from accelerate.utils import broadcast_object_list
        from transformers import Trainer, TrainingArguments
        from transformers.trainer_utils import get_last_checkpoint

        NAMES = ["oak", "elm", "fir"]

        def pick(root):
            folder = os.path.join(root, random.SystemRandom().choice(NAMES))
            return folder, get_last_checkpoint(folder) if os.path.isdir(folder) else None

        def of_helper(model, data, root):
            folder, last = pick(root)
            trainer = Trainer(model, TrainingArguments(output_dir=folder), train_dataset=data)
            trainer.train(resume_from_checkpoint=last)  # SPG506

        class Experiment:
            def __init__(self, root):
                self.folder = f"{root}/{random.choice(NAMES)}"

            def run(self, model, data):
                trainer = Trainer(model, TrainingArguments(output_dir=self.folder), train_dataset=data)
                trainer.train(self.folder)  # SPG506

        def by_engine(model, config, out):
            engine, *_ = deepspeed.initialize(model=model, config=config)
            engine.load_checkpoint(out, tag=secrets.choice(NAMES))  # SPG506

        def by_accelerator(model, out):
            accelerator = Accelerator()
            model = accelerator.prepare(model)
            accelerator.load_state(os.path.join(out, random.choice(NAMES)))  # SPG506

        def told(model, data, root):
            found = list(pick(root))
            found = broadcast_object_list(found, from_process=0)
            trainer = Trainer(model, TrainingArguments(output_dir=found[0]), train_dataset=data)
            trainer.train(resume_from_checkpoint=found[1])

        def seeded(model, data, root):
            trainer = Trainer(model, TrainingArguments(output_dir=root), train_dataset=data)
            trainer.train(resume_from_checkpoint=os.path.join(root, random.choice(NAMES)))

        def last_of(model, data, root):
            last = get_last_checkpoint(root) if os.path.isdir(root) else None
            trainer = Trainer(model, TrainingArguments(output_dir=root), train_dataset=data)
            trainer.train(resume_from_checkpoint=last)

        def anew(model, data):
            folder = time.strftime("runs/%H-%M")
            trainer = Trainer(model, TrainingArguments(output_dir=folder), train_dataset=data)
            trainer.train(resume_from_checkpoint=os.path.isdir(folder))

        def of_this_host(model, config):
            engine, *_ = deepspeed.initialize(model=model, config=config)
            engine.load_checkpoint(f"/scratch/{os.environ['LOCAL_RANK']}/last")
        """,
        "SPG506",
        "SPG303",
    )
