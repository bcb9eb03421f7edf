"""``is None`` asks whether something is there: which of two things it is does not tell."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_choices_without_none() -> None:
    """Where no arm gives None, ranks agree that it is there; where one does, or may, they do not."""
    assert agree(
        """
        import os
        from pathlib import Path

        import torch.distributed as dist

        def extend(folder):
            other = "checkpoints" / folder
            return other if other.exists() else folder

        def kept(folder, x):
            folder = extend(Path(folder))
            if folder is not None:
                dist.barrier()
            else:
                raise ValueError

        def tried(model, batch):
            try:
                embeds = model.embed(batch)
            except ValueError:
                embeds = model.embed(batch[:4])
            if embeds is None:
                return
            dist.barrier()

        def none_here(folder):
            found = folder if os.path.exists(folder) else None
            if found is not None:
                dist.barrier()  # SPG304

        def none_by_rank(model):
            state = model.state() if dist.get_rank() == 0 else None
            if state is not None:
                dist.barrier()  # SPG101

        def by_key(options):
            state = options.get("a") if dist.get_rank() == 0 else options.first()
            if state is None:
                dist.barrier()  # SPG101

        def nested(model, options):
            state = None
            if dist.get_rank() == 0:
                if options.x:
                    state = model.first()
                else:
                    state = model.second()
            if state is None:
                dist.barrier()  # SPG101

        def others(model, batch):
            embeds = model.a(batch) if dist.get_rank() == 0 else model.b(batch)
            if embeds == 3:
                dist.barrier()  # SPG101

        def too_large(model, options, folder):
            folder = extend(Path(folder))
            for name in options.names:
                folder = extend(folder / name if options.many else folder / "first" / name)
            if folder is None:
                raise ValueError
            dist.barrier()

        def made_of_either(model, batch):
            try:
                embeds = model.embed(batch)
            except ValueError:
                embeds = model.embed(batch[:4])
            embeds = embeds.reshape(2, 4)
            if embeds is None:
                return
            dist.barrier()
        """,
        "SPG101",
        "SPG102",
        "SPG202",
        "SPG205",
        "SPG304",
    )
