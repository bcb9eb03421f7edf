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
