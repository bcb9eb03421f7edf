"""SPG301: loops that keep errors and never agree to stop."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_loop_without_agreement() -> None:
    """Every way to keep an error in a loop with collectives asks for an agreement."""
    assert agree(
        """
        import torch.distributed as dist
        from spmdguard import defer_error, deferring, has_deferred_error, rank_local, sync_should_stop, try_or_defer

        @rank_local
        def log(step):
            with open("log", "a") as out:
                out.write(str(step))

        def decorated(steps, grad):
            for step in range(steps):  # SPG301
                dist.all_reduce(grad)
                log(step)

        def called(steps, grad, hook):
            for step in range(steps):  # SPG301
                dist.all_reduce(grad)
                try_or_defer(hook, step)

        def block(batches, grad, hook):
            while batches.more():  # SPG301
                dist.all_reduce(grad)
                with deferring("hook"):
                    hook()

        def by_hand(steps, grad, hook):
            for step in range(steps):  # SPG301
                dist.all_reduce(grad)
                try:
                    hook()
                except OSError as error:
                    defer_error(error)
        """,
        "SPG301",
    )


def test_answer_not_used() -> None:
    """An agreement whose answer nobody reads is none."""
    assert agree(
        """
        import torch.distributed as dist
        from spmdguard import defer_error, deferring, has_deferred_error, rank_local, sync_should_stop, try_or_defer

        @rank_local
        def log(step):
            with open("log", "a") as out:
                out.write(str(step))

        def train(steps, grad):
            for step in range(steps):
                dist.all_reduce(grad)
                log(step)
                sync_should_stop(has_deferred_error())  # SPG301

        def named(steps, grad):
            for epoch in range(3):
                for step in range(steps):
                    dist.all_reduce(grad)
                    log(step)
                    stop = sync_should_stop()  # SPG301

        def of_two(steps, grad):
            for step in range(steps):
                dist.all_reduce(grad)
                log(step)
                _ = sync_should_stop()
                sync_should_stop()  # SPG301

        def read_later(steps, grad):
            stop = False
            while not stop:
                dist.all_reduce(grad)
                log(steps)
                stop = sync_should_stop(has_deferred_error())
        """,
        "SPG301",
    )


def test_own_verdict() -> None:
    """Leaving a loop by this rank's own error is reported at the exit."""
    assert agree(
        """
        import torch.distributed as dist
        from spmdguard import defer_error, deferring, has_deferred_error, rank_local, sync_should_stop, try_or_defer

        @rank_local
        def log(step):
            with open("log", "a") as out:
                out.write(str(step))

        def train(steps, grad):
            for step in range(steps):
                dist.all_reduce(grad)
                log(step)
                if has_deferred_error():
                    break  # SPG301

        def flag(steps, grad, hook):
            failed = False
            for step in range(steps):
                dist.all_reduce(grad)
                try:
                    hook()
                except OSError as error:
                    defer_error(error)
                    failed = True
                if failed:
                    return  # SPG301
        """,
        "SPG301",
    )


def test_through_a_helper() -> None:
    """Deferral and collective may stand in functions that the loop calls."""
    assert agree(
        """
        import torch.distributed as dist
        from spmdguard import defer_error, deferring, has_deferred_error, rank_local, sync_should_stop, try_or_defer

        @rank_local
        def log(step):
            with open("log", "a") as out:
                out.write(str(step))

        class Trainer:
            def step(self, grad):
                dist.all_reduce(grad)
                log(0)

            def fit(self, grad):
                for _ in range(9):  # SPG301
                    self.step(grad)

        def main(grad):
            Trainer().fit(grad)
        """,
        "SPG301",
    )


def test_agreed_loops() -> None:
    """Break, return, while, a field, and an agreement once an epoch are all silent."""
    assert agree(
        """
        import torch.distributed as dist
        from spmdguard import defer_error, deferring, has_deferred_error, rank_local, sync_should_stop, try_or_defer

        @rank_local
        def log(step):
            with open("log", "a") as out:
                out.write(str(step))

        def stops(steps, grad):
            for step in range(steps):
                dist.all_reduce(grad)
                log(step)
                if sync_should_stop(has_deferred_error()):
                    break

        def returns(steps, grad):
            for step in range(steps):
                dist.all_reduce(grad)
                log(step)
                stop = sync_should_stop(has_deferred_error())
                if stop:
                    return step

        def once_an_epoch(epochs, batches, grad):
            for _ in range(epochs):
                for step in batches:
                    dist.all_reduce(grad)
                    log(step)
                if sync_should_stop(has_deferred_error()):
                    break

        class Trainer:
            def __init__(self):
                self.stop = False

            def fit(self, grad):
                while not self.stop:
                    dist.all_reduce(grad)
                    log(0)
                    self.stop = sync_should_stop(has_deferred_error())
        """,
        "SPG301",
    )


def test_reduced_by_hand() -> None:
    """A flag of one's own that is reduced and decides is an agreement."""
    assert agree(
        """
        import torch.distributed as dist
        from spmdguard import defer_error, deferring, has_deferred_error, rank_local, sync_should_stop, try_or_defer

        @rank_local
        def log(step):
            with open("log", "a") as out:
                out.write(str(step))

        import torch

        def train(steps, grad):
            for step in range(steps):
                dist.all_reduce(grad)
                log(step)
                flag = torch.tensor(int(has_deferred_error()))
                dist.all_reduce(flag, op=dist.ReduceOp.MAX)
                if flag.item():
                    break
        """,
        "SPG301",
    )


def test_no_collective_in_loop() -> None:
    """A loop without collectives may keep what it likes."""
    assert agree(
        """
        import torch.distributed as dist
        from spmdguard import defer_error, deferring, has_deferred_error, rank_local, sync_should_stop, try_or_defer

        @rank_local
        def log(step):
            with open("log", "a") as out:
                out.write(str(step))

        def write_all(files):
            for name in files:
                log(name)
        """,
        "SPG301",
    )


def test_miss_answer_only_printed() -> None:
    """Known miss: an answer that is read, but leaves no loop."""
    assert agree(
        """
        import torch.distributed as dist
        from spmdguard import defer_error, deferring, has_deferred_error, rank_local, sync_should_stop, try_or_defer

        @rank_local
        def log(step):
            with open("log", "a") as out:
                out.write(str(step))

        def train(steps, grad):
            for step in range(steps):
                dist.all_reduce(grad)
                log(step)
                stop = sync_should_stop(has_deferred_error())
                print(stop)
        """,
        "SPG301",
    )


EPOCHS = """
    import torch
    from spmdguard import deferring, rank_local, sync_should_stop
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader

    @rank_local
    def save(path, value):
        torch.save(value, path)

    def step(model, optimizer, batch):
        loss = model(batch).sum()
        loss.backward()
        optimizer.step()
        return loss

    def main(data, model, optimizer, epochs, rank):
        model = DistributedDataParallel(model)
        loader = DataLoader(data, batch_size=8, drop_last=True)
        for epoch in range(epochs):
            BODY
            if sync_should_stop():
                break
"""


def test_only_the_epoch_agrees() -> None:
    """Errors are kept in each step, and only the loop around asks for them."""
    for head in (
        "for batch in loader:",
        "for i, batch in enumerate(loader):",
        "for i, batch in zip(range(9), loader):",
    ):
        body = f"""{head}  # SPG301
                loss = step(model, optimizer, batch)
                save(f"{{rank}}.pt", loss)"""
        assert agree(EPOCHS.replace("BODY", body), "SPG301")


def test_epoch_that_keeps_no_error_of_its_steps() -> None:
    """The step agrees too, the error is one of the epoch, the inner loop is one of few rounds, or does not train."""
    for body in (
        """for batch in loader:
                save(f"{rank}.pt", step(model, optimizer, batch))
                if sync_should_stop():
                    break""",
        """for batch in loader:
                loss = step(model, optimizer, batch)
            save(f"{rank}.pt", loss)""",
        """for part in range(4):
                save(f"{rank}.pt", step(model, optimizer, data[part]))""",
        """for batch in loader:
                with torch.no_grad():
                    save(f"{rank}.pt", model(batch))""",
    ):
        assert agree(EPOCHS.replace("BODY", body), "SPG301")


def test_a_guarded_generator_that_has_ended() -> None:
    """Where its error is kept a generator ends early, and ``next`` raises outside of what guards it."""
    assert agree(
        """
        import json

        import torch.distributed as dist
        import spmdguard

        @spmdguard.rank_local
        def rows(path):
            for line in open(path):
                yield json.loads(line)

        def plain(path):
            for line in open(path):
                yield json.loads(line)

        @spmdguard.rank_local(default=None)
        def pull(stream):
            return next(stream)

        def asked(path, x):
            stream = rows(path)
            for _ in range(10):
                row = next(stream)  # SPG301
                dist.all_reduce(x)
                if spmdguard.sync_should_stop():
                    break

        class Feed:
            @spmdguard.rank_local
            def rows(self):
                for line in open(self.path):
                    yield json.loads(line)

            def train(self, x):
                self.stream = iter(self.rows())
                while not spmdguard.sync_should_stop():
                    self.row = next(self.stream)  # SPG301
                    dist.all_reduce(x)

        def guarded(path, x):
            stream = plain(path)
            for _ in range(10):
                row = pull(stream)
                dist.all_reduce(x)
                if spmdguard.sync_should_stop():
                    break

        def kept_too(path, x):
            stream = rows(path)
            for _ in range(10):
                row = None
                with spmdguard.deferring("row"):
                    row = next(stream)
                dist.all_reduce(x)
                if spmdguard.sync_should_stop():
                    break

        def with_a_default(path, x):
            stream = rows(path)
            for _ in range(10):
                row = next(stream, {})
                dist.all_reduce(x)
                if spmdguard.sync_should_stop():
                    break
        """,
        "SPG301",
    )
