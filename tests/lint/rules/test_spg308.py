"""SPG308: stops that a signal asks for on one rank."""

from __future__ import annotations

from tests.lint.rules.marked import agree

SIGNALS = ("SPG101", "SPG102", "SPG308", "SPG402")


def test_ways_to_keep_a_flag() -> None:
    """A global, an attribute, a closure's variable, an entry, an event; exits and branches."""
    assert agree(
        """
        import signal
        import threading
        import torch.distributed as dist

        stop = False

        def on_term(number, frame):
            global stop
            stop = True

        def by_global(xs):
            signal.signal(signal.SIGTERM, on_term)
            for x in xs:
                if stop:  # SPG308
                    break
                dist.all_reduce(x)

        class Trainer:
            def __init__(self):
                self.stop = False
                signal.signal(signal.SIGUSR1, self.on_signal)

            def on_signal(self, number, frame):
                self.stop = True

            def fit(self, xs):
                for x in xs:
                    dist.all_reduce(x)
                    if self.stop:  # SPG308
                        return

        def by_closure(xs):
            leave = False

            def handler(number, frame):
                nonlocal leave
                leave = True

            signal.signal(signal.SIGINT, handler)
            for x in xs:
                if leave:  # SPG308
                    break
                dist.all_reduce(x)

        def by_entry(x):
            state = {"stop": False}

            def handler(number, frame):
                state["stop"] = True

            signal.signal(signal.SIGTERM, handler)
            while not state["stop"]:  # SPG308
                dist.all_reduce(x)

        def by_event(xs):
            asked = threading.Event()
            signal.signal(signal.SIGTERM, lambda number, frame: asked.set())
            for x in xs:
                dist.all_reduce(x)
                if asked.is_set():  # SPG308
                    dist.barrier()
        """,
        *SIGNALS,
    )


def test_a_last_save() -> None:
    """Where a rank saves before it leaves, the test of the flag is what is wrong; other work is reported in place."""
    assert agree(
        """
        import signal
        import torch
        import torch.distributed as dist

        class Stop:
            def __init__(self):
                self.asked = False
                signal.signal(signal.SIGTERM, self.note)

            def note(self, number, frame):
                self.asked = True

        def save(model):
            torch.save(model, "last.pt")
            dist.barrier()

        def breaks(xs, model):
            stop = Stop()
            for x in xs:
                dist.all_reduce(x)
                if stop.asked:  # SPG308
                    save(model)
                    break

        def returns(xs):
            stop = Stop()
            for x in xs:
                dist.all_reduce(x)
                if stop.asked:  # SPG308
                    dist.barrier()
                    return

        def goes_on(xs, model):
            stop = Stop()
            for x in xs:
                dist.all_reduce(x)
                if stop.asked:  # SPG308
                    save(model)
        """,
        *SIGNALS,
    )


def test_shared_flags_are_silent() -> None:
    """A reduced flag, and a handler that only prints."""
    assert agree(
        """
        import signal
        import torch
        import torch.distributed as dist

        stop = False

        def on_term(number, frame):
            global stop
            stop = True

        def agreed(xs):
            signal.signal(signal.SIGTERM, on_term)
            for x in xs:
                flag = torch.tensor(int(stop))
                dist.all_reduce(flag, op=dist.ReduceOp.MAX)
                if flag.item():
                    break
                dist.all_reduce(x)

        def prints(xs):
            signal.signal(signal.SIGUSR1, lambda number, frame: print("here"))
            for x in xs:
                dist.all_reduce(x)
        """,
        *SIGNALS,
    )


def test_collectives_of_the_handler_itself() -> None:
    """A barrier or a save in a handler, in place and behind a method, runs at any point of each process."""
    assert agree(
        """
        import signal
        import sys
        import torch.distributed as dist

        def on_term(number, frame):
            dist.barrier()  # SPG308
            sys.exit(1)

        def main(xs):
            signal.signal(signal.SIGTERM, on_term)
            for x in xs:
                dist.all_reduce(x)

        class Runner:
            def __init__(self, engine):
                self.engine = engine
                signal.signal(signal.SIGUSR1, self.terminate)

            def shutdown(self):
                dist.barrier()
                dist.destroy_process_group()

            def terminate(self, number, frame):
                if dist.get_rank() == 0:
                    print("leaving")
                self.shutdown()  # SPG308
                sys.exit(1)
        """,
        "SPG308",
    )


def test_handlers_that_only_note_or_end() -> None:
    """A handler that sets a flag, or ends the process group and the process, starts nothing together."""
    assert agree(
        """
        import os
        import signal
        import torch
        import torch.distributed as dist

        class Runner:
            def __init__(self):
                self.asked = False
                signal.signal(signal.SIGTERM, self.note)
                signal.signal(signal.SIGINT, self.leave)

            def note(self, number, frame):
                self.asked = True

            def leave(self, number, frame):
                dist.destroy_process_group()
                os._exit(1)

            def run(self, xs):
                for x in xs:
                    flag = torch.tensor(int(self.asked))
                    dist.all_reduce(flag)
                    if flag.item():
                        dist.barrier()
                        break
        """,
        "SPG308",
    )


def test_trainers_that_are_made_of_arguments() -> None:
    """``Trainer.from_argparse_args`` gives a trainer."""
    assert agree(
        """
        import signal
        from pytorch_lightning import Trainer

        def main(opt, model, data):
            trainer = Trainer.from_argparse_args(opt, max_epochs=3)

            def save(*args):
                if trainer.global_rank == 0:
                    trainer.save_checkpoint("last.ckpt")  # SPG308

            def tell(*args):
                if trainer.global_rank == 0:
                    print("still here")

            signal.signal(signal.SIGUSR1, save)
            signal.signal(signal.SIGUSR2, tell)
            trainer.fit(model, data)

        def at_the_end(opt, model, data):
            trainer = Trainer.from_argparse_args(opt)
            trainer.fit(model, data)
            trainer.save_checkpoint("last.ckpt")
            if trainer.is_global_zero:
                trainer.save_checkpoint("again.ckpt")  # SPG101
        """,
        "SPG308",
        "SPG101",
    )
