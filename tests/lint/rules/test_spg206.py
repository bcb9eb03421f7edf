"""SPG206: collectives on the way out of an error."""

from __future__ import annotations

from spmdguard_lint.config import Config
from spmdguard_lint.engine import StandardInput, lint

from tests.lint.rules.marked import agree

PATHS = ("SPG101", "SPG202", "SPG206")


def test_in_handlers() -> None:
    """A barrier or a reduction in an except clause that leaves."""
    assert agree(
        """
        import torch.distributed as dist

        def meets(step, batch):
            try:
                dist.all_reduce(step(batch))
            except Exception:
                dist.barrier()  # SPG206
                raise

        def reports(step, batch, box):
            try:
                dist.all_reduce(step(batch))
            except Exception as error:
                dist.all_gather_object(box, str(error))  # SPG206
                raise

        def alone(path, x):
            try:
                text = open(path).read()
            except OSError:
                dist.barrier()  # SPG206
                raise
            dist.all_reduce(x)
        """,
        *PATHS,
    )


def test_in_finally() -> None:
    """A barrier, a reduction or a teardown that a failed rank reaches while the others are in the body."""
    assert agree(
        """
        import torch.distributed as dist

        def barrier(load, x):
            try:
                batch = load()
                dist.all_reduce(batch)
            finally:
                dist.barrier()  # SPG206

        def in_a_loop(load, batches):
            try:
                for batch in batches:
                    dist.all_reduce(batch)
                    load(batch)
            finally:
                dist.barrier()  # SPG206

        def close():
            dist.barrier()

        def through_a_call(load, x):
            try:
                load()
                dist.all_reduce(x)
            finally:
                close()  # SPG206

        def teardown(path, x):
            try:
                text = open(path).read()
                dist.all_reduce(x)
            finally:
                dist.destroy_process_group()  # SPG206
        """,
        *PATHS,
    )


def test_right_paths_are_silent() -> None:
    """Local work in the body, the collective behind the try, a handler that all ranks run."""
    assert agree(
        """
        import torch.distributed as dist

        def local_body(path):
            dist.barrier()
            try:
                text = open(path).read()
            finally:
                dist.barrier()
            return text

        def behind(load, x):
            try:
                batch = load()
            except ValueError:
                batch = x
            dist.all_reduce(batch)

        def teardown_of_the_unknown(train):
            try:
                train()
            finally:
                dist.destroy_process_group()

        def nothing_fails_before(x):
            try:
                dist.all_reduce(x)
            finally:
                dist.barrier()
        """,
        *PATHS,
    )


def test_in_exception_hooks() -> None:
    """A hook that an uncaught exception calls runs on the rank that has failed, and on no other."""
    assert agree(
        """
        import sys
        import lightning.pytorch as pl
        import torch.distributed as dist

        class Rescue(pl.Callback):
            def on_exception(self, trainer, pl_module, exception):
                print(f"rank {trainer.global_rank}: {exception}")
                trainer.save_checkpoint("rescue.ckpt")  # SPG206

        class Keeper(pl.callbacks.ModelCheckpoint):
            def _keep(self, trainer):
                trainer.strategy.barrier()

            def on_exception(self, trainer, module, error):
                self._keep(trainer)  # SPG206

        def goodbye(kind, error, trace):
            dist.barrier()  # SPG206
            sys.__excepthook__(kind, error, trace)

        sys.excepthook = goodbye
        """,
        *PATHS,
    )


def test_exception_hooks_without_a_meeting() -> None:
    """What stays on the rank, ends the group, or answers an interrupt that all get, is right; so are other hooks."""
    assert agree(
        """
        import sys
        import lightning.pytorch as pl
        import torch.distributed as dist

        class Rescue(pl.Callback):
            def on_exception(self, trainer, pl_module, exception):
                print(f"rank {trainer.global_rank}: {exception}")
                if isinstance(exception, KeyboardInterrupt):
                    trainer.save_checkpoint("interrupted.ckpt")

            def on_train_epoch_end(self, trainer, pl_module):
                trainer.save_checkpoint("epoch.ckpt")

        class Other:
            def on_exception(self, trainer, x):
                dist.all_reduce(x)

        def goodbye(kind, error, trace):
            print(error)
            dist.destroy_process_group()

        sys.excepthook = goodbye
        """,
        *PATHS,
    )


def test_saves_of_a_trainer_on_the_way_out() -> None:
    """A function in which only a trainer meets the others: a save in its handler, a hook that it or its object sets."""
    assert agree(
        """
        import sys
        import lightning.pytorch as pl
        from accelerate import Accelerator

        def fits(net, data):
            trainer = pl.Trainer(devices=2)
            try:
                trainer.fit(net, data)
            except Exception:
                trainer.save_checkpoint("rescue.ckpt")  # SPG206
                raise

        class Hook:
            def __init__(self, accelerator: Accelerator):
                self.accelerator = accelerator
                sys.excepthook = self.on_error

            def on_error(self, kind, value, trace):
                self.accelerator.save_state("rescue")  # SPG206

        def sets(net, data):
            trainer = pl.Trainer(devices=2)

            def hook(kind, value, trace):
                trainer.save_checkpoint("rescue.ckpt")  # SPG206

            sys.excepthook = hook
            trainer.fit(net, data)

        def interrupted(net, data):
            trainer = pl.Trainer(devices=2)
            try:
                trainer.fit(net, data)
            except KeyboardInterrupt:
                trainer.save_checkpoint("interrupted.ckpt")
        """,
        *PATHS,
    )


def test_exits_of_a_failed_block() -> None:
    """What `__exit__` does only where it is told of an exception."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        import torch.distributed.checkpoint as dcp

        class Rescue:
            def __enter__(self):
                return self

            def __exit__(self, kind, value, trace):
                if kind is not None:
                    dcp.save({}, checkpoint_id="rescue")  # SPG206
                    return
                dist.barrier()

        class Helping:
            def __enter__(self):
                return self

            def __exit__(self, kind, *rest):
                if kind:
                    self.last_words()

            def last_words(self):
                dist.barrier()  # SPG206

        class Leaving:
            def __exit__(self, *exception):
                if exception[0] is None:
                    return False
                dist.barrier()  # SPG206

        class Alone:
            def __exit__(self, kind, value, trace):
                if kind is not None:
                    torch.save({}, "rescue.pt")
                    dist.destroy_process_group()
                    return
                dist.barrier()

        class Agreeing:
            def __exit__(self, kind, *rest):
                failed = torch.tensor(int(kind is not None))
                dist.all_reduce(failed)
                if kind is None:
                    dist.all_reduce(failed)
                else:
                    dist.all_reduce(failed)

        class Good:
            def __exit__(self, kind, *rest):
                if kind is None:
                    dist.barrier()

        def train(step, batch):
            with Rescue():
                dist.all_reduce(step(batch))
            with Helping():
                dist.all_reduce(step(batch))
            with Leaving():
                dist.all_reduce(step(batch))
            with Alone():
                dist.all_reduce(step(batch))
            with Agreeing():
                step(batch)
            with Good():
                dist.all_reduce(step(batch))
        """,
        *PATHS,
    )


def test_the_teardown_alone_is_a_warning() -> None:
    """With gloo the group is gone at once: whether it waits is not certain."""
    source = """
import torch.distributed as dist

def main(x, path, batches):
    dist.init_process_group("nccl")
    try:
        text = open(path).read()
        for batch in batches:
            dist.all_reduce(batch)
    finally:
        dist.destroy_process_group()
"""
    result = lint([], Config(select=("SPG206",)), stdin=StandardInput(source.encode(), "train.py"))
    assert [(finding.site.start.row, finding.severity) for finding in result.findings] == [(11, "warning")]


def test_exits_that_do_not_ask() -> None:
    """A barrier that `__exit__` calls in any case, in place, behind a method, around a loop of the other ranks."""
    assert agree(
        """
        import torch.distributed as dist

        class Closing:
            def __enter__(self):
                dist.init_process_group("gloo")
                return self

            def __exit__(self, kind, value, trace):
                self.close()
                return False

            def close(self):
                dist.barrier()  # SPG206
                dist.destroy_process_group()

        class Timed:
            def __exit__(self, *exception):
                if dist.is_initialized():
                    dist.barrier()  # SPG206

        class Together:
            def __exit__(self, *exception):
                dist.barrier()

        class Asking:
            def __exit__(self, kind, value, trace):
                if not kind:
                    self.close()

            def close(self):
                dist.barrier()

        def train(step, batches, path):
            with Closing():
                for batch in batches:
                    dist.all_reduce(step(batch))
            with Timed():
                text = open(path).read()
                dist.broadcast(text, 0)
            with Together():
                text = open(path).read()
            with Together():
                dist.all_reduce(batches)
            with Asking():
                dist.all_reduce(step(batches))
        """,
        *PATHS,
    )
