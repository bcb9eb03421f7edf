"""SPG211: work of single ranks that is declared collective."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_called_on_one_rank() -> None:
    """Behind a branch, an early return or a decorator of the caller, as function or method."""
    assert agree(
        """
        import json
        from pathlib import Path

        import spmdguard as sg
        from spmdguard import collective, is_main_process

        @sg.collective(name="manifest")  # SPG211
        def manifest(folder, step):
            Path(folder).joinpath("m.json").write_text(json.dumps({"step": step}))

        class Runner:
            @collective  # SPG211
            def note(self, step):
                with open("notes.txt", "a") as out:
                    out.write(str(step))

        @collective  # SPG211
        def only_inside(step):
            if not is_main_process():
                return
            with open("inside.txt", "a") as out:
                out.write(str(step))

        def late(step, runner):
            if not sg.is_main_process():
                return
            runner.note(step)

        def train(steps, total):
            import torch.distributed as dist
            runner = Runner()
            for step in range(steps):
                dist.all_reduce(total)
                if is_main_process() and step % 10 == 0:
                    manifest("out", step)
                late(step, runner)
                only_inside(step)
        """,
        "SPG211",
    )


def test_collectives_and_work_of_all() -> None:
    """Functions that communicate, that all ranks call, or that touch nothing outside of the process."""
    assert agree(
        """
        import torch.distributed as dist
        from spmdguard import collective, is_main_process, rank_local

        @collective
        def reduce(total):
            dist.all_reduce(total)
            if dist.get_rank() == 0:
                open("total.txt", "w").write(str(total))

        @collective
        def shard(step):
            open(f"{dist.get_rank()}.txt", "w").write(str(step))

        @collective
        def noted(step, steps):
            steps.append(step)

        @rank_local
        def write(step):
            open("out.txt", "w").write(str(step))

        def train(steps, total):
            for step in range(steps):
                reduce(total)
                shard(step)
                if is_main_process():
                    noted(step, [])
                    write(step)
        """,
        "SPG211",
    )
