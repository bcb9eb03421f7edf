"""SPG607: tracker runs that are closed as finished too early."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_closed_before_the_raise() -> None:
    """A block or call that ends the run before the kept error is raised."""
    assert agree(
        """
        import contextlib

        import mlflow
        import torch.distributed as dist
        import wandb
        from spmdguard import raise_if_deferred_error

        def block(total, lead):
            tracked = mlflow.start_run() if lead else contextlib.nullcontext()
            with tracked:  # SPG607
                dist.all_reduce(total)
            dist.destroy_process_group()
            raise_if_deferred_error()

        def call(total):
            wandb.init(project="x")
            dist.all_reduce(total)
            dist.destroy_process_group()
            wandb.finish()  # SPG607
            raise_if_deferred_error()
        """,
        "SPG607",
    )


def test_left_to_the_exit_hook() -> None:
    """An MLflow run that no error marks as failed."""
    assert agree(
        """
        import contextlib

        import mlflow
        import torch.distributed as dist
        import wandb
        from spmdguard import raise_if_deferred_error

        def train(total):
            mlflow.start_run()  # SPG607
            dist.all_reduce(total)
            mlflow.end_run()
        """,
        "SPG607",
    )


def test_whole_life() -> None:
    """The raise inside of the block, a stated status, and other trackers are silent."""
    assert agree(
        """
        import contextlib

        import mlflow
        import torch.distributed as dist
        import wandb
        from spmdguard import raise_if_deferred_error

        def block(total):
            with mlflow.start_run():
                dist.all_reduce(total)
                dist.destroy_process_group()
                raise_if_deferred_error()

        def stated(total):
            mlflow.start_run()
            status = "FAILED"
            try:
                dist.all_reduce(total)
                status = "FINISHED"
            finally:
                mlflow.end_run(status=status)

        def other(total):
            wandb.init(project="x")
            dist.all_reduce(total)
            wandb.finish()
        """,
        "SPG607",
    )


def test_single_process() -> None:
    """Without communication there is nothing to say."""
    assert agree(
        """
        import contextlib

        import mlflow
        import torch.distributed as dist
        import wandb
        from spmdguard import raise_if_deferred_error

        def train():
            mlflow.start_run()
            mlflow.end_run()
        """,
        "SPG607",
    )


def test_miss_failed_elsewhere() -> None:
    """Known false alarm: a status that an exception hook elsewhere sets is not seen."""
    assert agree(
        """
        import contextlib

        import mlflow
        import torch.distributed as dist
        import wandb
        from spmdguard import raise_if_deferred_error

        def hook(kind, value, trace):
            mlflow.end_run("FAILED")

        def train(total):
            mlflow.start_run()  # SPG607
            dist.all_reduce(total)
            mlflow.end_run()
        """,
        "SPG607",
    )


def test_block_of_another_tracker() -> None:
    """A with block of another tracker's run ends it as well."""
    assert agree(
        """
        import torch.distributed as dist
        import wandb
        from spmdguard import raise_if_deferred_error

        def main(total):
            with wandb.init(project="x") as run:  # SPG607
                dist.all_reduce(total)
                run.log({"a": 1})
            dist.destroy_process_group()
            raise_if_deferred_error()
        """,
        "SPG607",
    )


def test_ended_in_finally_with_the_default_status() -> None:
    """`end_run()` in `finally` is passed by an error too, and says FINISHED."""
    assert agree(
        """
        import mlflow
        import torch.distributed as dist
        from spmdguard import raise_if_deferred_error

        def defaulted(total, lead):
            mlflow.start_run()
            try:
                dist.all_reduce(total)
                dist.destroy_process_group()
                raise_if_deferred_error()
            finally:
                if lead:
                    mlflow.end_run()  # SPG607

        def close():
            mlflow.end_run()  # SPG607

        def helper(total):
            mlflow.start_run()
            try:
                dist.all_reduce(total)
            finally:
                close()

        def stated(total, lead):
            status = "FAILED"
            mlflow.start_run()
            try:
                dist.all_reduce(total)
                dist.destroy_process_group()
                raise_if_deferred_error()
                status = "FINISHED"
            finally:
                if lead:
                    mlflow.end_run(status)

        def marked(total):
            mlflow.start_run()
            try:
                dist.all_reduce(total)
            except BaseException:
                mlflow.end_run("FAILED")
                raise
            finally:
                mlflow.end_run()
        """,
        "SPG607",
    )


def test_closed_by_a_context_manager_of_the_project() -> None:
    """The block that a run lives in ends before the kept error is raised; a status of success is no other ending."""
    assert agree(
        """
        import contextlib

        import torch.distributed as dist
        import wandb
        from spmdguard import has_deferred_error, raise_if_deferred_error

        @contextlib.contextmanager
        def tracked(name):
            run = wandb.init(name=name)
            try:
                yield run
            except BaseException:
                run.finish(exit_code=1)
                raise
            run.finish(exit_code=0)

        class Tracked:
            def __enter__(self):
                self.run = wandb.init()
                return self.run

            def __exit__(self, kind, error, trace):
                self.run.finish(exit_code=0 if kind is None else 1)

        def early(step):
            with tracked("base"):  # SPG607
                dist.all_reduce(step())
                dist.destroy_process_group()
            raise_if_deferred_error()

        def inside(step):
            with tracked("base"):
                dist.all_reduce(step())
                dist.destroy_process_group()
                raise_if_deferred_error()

        def stated(step):
            run = wandb.init()
            dist.all_reduce(step())
            dist.destroy_process_group()
            run.finish(exit_code=0)  # SPG607
            raise_if_deferred_error()

        def as_failed(step):
            run = wandb.init()
            dist.all_reduce(step())
            dist.destroy_process_group()
            run.finish(exit_code=1)
            raise_if_deferred_error()

        def asked(step):
            run = wandb.init()
            dist.all_reduce(step())
            dist.destroy_process_group()
            if has_deferred_error():
                run.finish(exit_code=1)
            else:
                run.finish(exit_code=0)
            raise_if_deferred_error()
        """,
        "SPG607",
    )


def test_closed_as_finished_while_an_error_goes_on() -> None:
    """W&B marks a run as failed that is open when an error ends the program, not one that is closed by then."""
    assert agree(
        """
        import contextlib

        import swanlab
        import torch.distributed as dist
        import wandb

        def local(step, lead):
            run = wandb.init(project="x") if dist.get_rank() == 0 else None
            try:
                dist.all_reduce(step())
            finally:
                if run is not None:
                    run.finish()  # SPG607

        def of_the_module(step, args):
            if args.use_wandb and dist.get_rank() == 0:
                wandb.init(project="x")
            try:
                dist.all_reduce(step())
            finally:
                if args.use_wandb and wandb.run is not None:
                    wandb.finish(quiet=True)  # SPG607

        def clause(step):
            wandb.init(project="x")
            try:
                dist.all_reduce(step())
            except Exception:
                wandb.finish()  # SPG607
                raise
            wandb.finish()

        class Tracker:
            def __init__(self):
                self.run = swanlab.init(project="x")

            def close(self):
                self.run.finish()  # SPG607

        def of_an_object(step):
            tracker = Tracker()
            try:
                dist.all_reduce(step())
            finally:
                tracker.close()

        @contextlib.contextmanager
        def tracked():
            run = wandb.init(project="x")
            try:
                yield run
            finally:
                run.finish()  # SPG607

        def managed(step):
            with tracked():
                dist.all_reduce(step())
        """,
        "SPG607",
    )


def test_closed_as_it_went() -> None:
    """A code for an error, a test of how it went, a close behind, and trackers without a state are silent."""
    assert agree(
        """
        import contextlib
        import sys

        import torch.distributed as dist
        import trackio
        import wandb

        def coded(step):
            run = wandb.init(project="x")
            code = 1
            try:
                dist.all_reduce(step())
                code = 0
            finally:
                run.finish(exit_code=code)

        def marked(step):
            run = wandb.init(project="x")
            try:
                dist.all_reduce(step())
            except BaseException:
                run.finish(exit_code=1)
                raise
            run.finish()

        def asked(step):
            run = wandb.init(project="x")
            failed = True
            try:
                dist.all_reduce(step())
                failed = False
            finally:
                if not failed:
                    run.finish()

        def of_the_program(step):
            run = wandb.init(project="x")
            try:
                dist.all_reduce(step())
            finally:
                if sys.exc_info()[0] is None:
                    run.finish()

        def behind(step):
            run = wandb.init(project="x")
            try:
                dist.all_reduce(step())
            finally:
                dist.destroy_process_group()
            run.finish()

        def interrupted(step):
            run = wandb.init(project="x")
            try:
                dist.all_reduce(step())
            except KeyboardInterrupt:
                run.finish()
                raise

        def block(step):
            with wandb.init(project="x"):
                dist.all_reduce(step())

        def stateless(step):
            run = trackio.init(project="x")
            try:
                dist.all_reduce(step())
            finally:
                run.finish()

        def alone():
            run = wandb.init(project="x")
            try:
                print("no other process")
            finally:
                run.finish()
        """,
        "SPG607",
    )
