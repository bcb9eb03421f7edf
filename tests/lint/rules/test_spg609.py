"""SPG609: failures that the launcher sees as success."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_signal_handler() -> None:
    """A handler that leaves with status 0, as function or method."""
    assert agree(
        """
        import os
        import signal
        import sys

        import torch
        import torch.distributed as dist

        def on_term(signum, frame):
            print("bye")
            sys.exit(0)  # SPG609

        class Job:
            def __init__(self):
                signal.signal(signal.SIGUSR1, self.leave)

            def leave(self, signum, frame):
                os._exit(0)  # SPG609

        def main(total):
            signal.signal(signal.SIGTERM, on_term)
            Job()
            dist.all_reduce(total)

        main(None)
        """,
        "SPG609",
    )


def test_except_clause() -> None:
    """A clause that ends a failed rank with status 0."""
    assert agree(
        """
        import os
        import signal
        import sys

        import torch
        import torch.distributed as dist

        def load(path):
            try:
                state = torch.load(path)
            except OSError:
                print("no state")
                sys.exit()  # SPG609
            dist.barrier()
            return state

        def train(total):
            dist.barrier()
            try:
                dist.all_reduce(total)
            except RuntimeError:
                exit(0)  # SPG609
        """,
        "SPG609",
    )


def test_status_or_flag() -> None:
    """Another status, a message, a flag, or the exception itself is silent."""
    assert agree(
        """
        import os
        import signal
        import sys

        import torch
        import torch.distributed as dist

        class Job:
            def __init__(self):
                self.stop = False
                signal.signal(signal.SIGTERM, self.note)

            def note(self, signum, frame):
                self.stop = True

        def load(path, total):
            Job()
            try:
                state = torch.load(path)
            except OSError:
                sys.exit(3)
            except KeyError:
                sys.exit("no key")
            dist.all_reduce(total)
            return state
        """,
        "SPG609",
    )


def test_user_interrupt() -> None:
    """Who interrupts the program wants it to end."""
    assert agree(
        """
        import os
        import signal
        import sys

        import torch
        import torch.distributed as dist

        def main(total):
            dist.barrier()
            try:
                dist.all_reduce(total)
            except KeyboardInterrupt:
                sys.exit(0)
        """,
        "SPG609",
    )


def test_no_communication() -> None:
    """A program of one process may end as it likes."""
    assert agree(
        """
        import os
        import signal
        import sys

        import torch
        import torch.distributed as dist

        def load(path):
            try:
                return torch.load(path)
            except OSError:
                sys.exit()
        """,
        "SPG609",
    )


def test_miss_status_in_a_variable() -> None:
    """Known miss: a status that is not a constant."""
    assert agree(
        """
        import os
        import signal
        import sys

        import torch
        import torch.distributed as dist

        def load(path, code):
            try:
                torch.load(path)
            except OSError:
                sys.exit(code)
            dist.barrier()
        """,
        "SPG609",
    )


def test_finally_block() -> None:
    """An exit in a finally block turns every failure into success."""
    assert agree(
        """
        import sys

        import torch.distributed as dist

        def main(total):
            dist.init_process_group("gloo")
            try:
                dist.all_reduce(total)
            finally:
                sys.exit(0)  # SPG609

        main(None)
        """,
        "SPG609",
    )


def test_errors_that_are_kept_for_ever() -> None:
    """A program that keeps errors until the group is destroyed has to raise them then."""
    program = """
        import torch.distributed as dist
        from spmdguard import has_deferred_error, raise_if_deferred_error, rank_local, sync_should_stop

        @rank_local(only="main")
        def write(step):
            open("log", "a").write(str(step))

        def main():
            dist.init_process_group("gloo")
            for step in range(10):
                write(step)
                if sync_should_stop(has_deferred_error()):
                    break
            dist.destroy_process_group()LAST

        main()
        """
    assert agree(program.replace("LAST", "  # SPG609").replace("raise_if_deferred_error, ", ""), "SPG609")
    assert agree(program.replace("LAST", "\n            raise_if_deferred_error()"), "SPG609")


def test_swallowed_before_it_is_kept() -> None:
    """An except clause that only logs leaves nothing to a deferral around it, in a block, a function, a call."""
    assert agree(
        """
        import json
        import logging
        import torch.distributed as dist
        from spmdguard import deferring, has_deferred_error, raise_if_deferred_error, rank_local, sync_should_stop
        from spmdguard import try_or_defer

        @rank_local(only="main")
        def note(path, text):
            try:
                with open(path, "a") as out:
                    out.write(text)
            except Exception:  # SPG609
                logging.exception("not written")
                return

        def dump(path, values):
            try:
                json.dump(values, open(path, "w"))
            except (OSError, ValueError):  # SPG609
                pass

        def train(steps, x):
            for step in range(steps):
                dist.all_reduce(x)
                note("log", str(step))
                try_or_defer(dump, "values", {"step": step})
                with deferring("count"):
                    try:
                        open("count", "w").write(str(step))
                    except OSError as error:  # SPG609
                        print(error)
                if sync_should_stop(has_deferred_error()):
                    break
            raise_if_deferred_error()
        """,
        "SPG609",
    )


def test_handled_before_it_is_kept() -> None:
    """A special case, another attempt, an error raised again, a tracker's, and a try beside what may fail."""
    assert agree(
        """
        import os
        import json
        import torch.distributed as dist
        import wandb
        from spmdguard import deferring, has_deferred_error, raise_if_deferred_error, sync_should_stop

        def train(steps, x):
            for step in range(steps):
                dist.all_reduce(x)
                with deferring("old"):
                    try:
                        os.remove("old")
                    except FileNotFoundError:
                        pass
                with deferring("values"):
                    try:
                        os.remove("tmp")
                    except OSError:
                        pass
                    json.dump({"step": step}, open("values", "w"))
                with deferring("again"):
                    try:
                        open("count", "w").write(str(step))
                    except OSError:
                        open("/tmp/count", "w").write(str(step))
                with deferring("raised"):
                    try:
                        open("raised", "w").write(str(step))
                    except OSError as error:
                        print(error)
                        raise
                with deferring("tracker"):
                    try:
                        wandb.log({"step": step})
                    except Exception as error:
                        print(error)
                if sync_should_stop(has_deferred_error()):
                    break
            raise_if_deferred_error()
        """,
        "SPG609",
    )


def test_kept_error_that_is_only_logged() -> None:
    """A clause around the raise of the kept error that does no more than log it."""
    assert agree(
        """
        import logging
        import sys
        import torch.distributed as dist
        import spmdguard
        from spmdguard import rank_local

        @rank_local
        def dump(text):
            open("x", "w").write(text)

        def logged(x):
            dist.all_reduce(x)
            dump("x")
            dist.destroy_process_group()
            try:
                spmdguard.raise_if_deferred_error()
            except Exception:  # SPG609
                logging.exception("a problem")

        def finish():
            dist.destroy_process_group()
            spmdguard.raise_if_deferred_error()

        def helper(x):
            dist.all_reduce(x)
            try:
                finish()
            except (OSError, ValueError) as error:  # SPG609
                print(error)

        def again(x):
            dist.all_reduce(x)
            dist.destroy_process_group()
            try:
                spmdguard.raise_if_deferred_error()
            except Exception:
                logging.exception("a problem")
                raise

        def status(x):
            dist.all_reduce(x)
            dist.destroy_process_group()
            try:
                spmdguard.raise_if_deferred_error()
            except Exception:
                logging.exception("a problem")
                sys.exit(3)

        def answer(x):
            dist.all_reduce(x)
            dist.destroy_process_group()
            try:
                spmdguard.raise_if_deferred_error()
            except Exception as error:
                print(error)
                return 1
            return 0

        def special(x):
            dist.all_reduce(x)
            dist.destroy_process_group()
            try:
                spmdguard.raise_if_deferred_error()
            except spmdguard.OtherRanksFailedError:
                print("elsewhere")
        """,
        "SPG609",
    )


TRIES = """
    import shutil
    import time
    import torch.distributed as dist
    from spmdguard import deferring, raise_if_deferred_error, rank_local, sync_should_stop

    def push(name, tries=3):
        with deferring("push"):
            for attempt in range(tries):
                try:
                    shutil.copy(name, "/remote")
                    return
                except OSError as error:CODE
                    print("failed", error)
                    LAST
            AFTER

    def train(steps, x):
        for step in range(steps):
            dist.all_reduce(x)
            push(str(step))
            if sync_should_stop():
                break
        raise_if_deferred_error()
"""


def test_last_try_is_swallowed() -> None:
    """Several attempts, after the last of which nothing is raised; or an error behind them, in the clause, in else."""
    for last in ("time.sleep(2 ** attempt)", "continue", "pass"):
        assert agree(
            TRIES.replace("CODE", "  # SPG609").replace("LAST", last).replace("AFTER", "pass"), "SPG609"
        )
    silent = TRIES.replace("CODE", "")
    for last, after in (
        ("time.sleep(1)", "raise OSError(name)"),
        ("if attempt == tries - 1:\n                        raise", "pass"),
        ("last = error", "pass"),
    ):
        assert agree(silent.replace("LAST", last).replace("AFTER", after), "SPG609")
