"""What each fix makes of a program, word for word."""

from __future__ import annotations

import textwrap

from tests.lint.fixes.example import Example, example
from tests.lint.fixes.examples_reachability import EXAMPLES as REACHABILITY

EXAMPLES: list[Example] = [
    *REACHABILITY,
    example(
        "SPG301",
        "unsafe",
        """
        import torch.distributed as dist
        from spmdguard import deferring, has_deferred_error, sync_should_stop

        def train(steps, grad, hook):
            for step in range(steps):
                dist.all_reduce(grad)
                with deferring("hook"):
                    hook(step)

                # the end of the step
                sync_should_stop(has_deferred_error())  # all ranks
        """,
        """
        import torch.distributed as dist
        from spmdguard import deferring, has_deferred_error, sync_should_stop

        def train(steps, grad, hook):
            for step in range(steps):
                dist.all_reduce(grad)
                with deferring("hook"):
                    hook(step)

                # the end of the step
                if sync_should_stop(has_deferred_error()):  # all ranks
                    break
        """,
    ),
    example(
        "SPG301",
        "unsafe",
        """
        import torch.distributed as dist
        from spmdguard import rank_local

        @rank_local(only="main")
        def log(step):
            with open("log.txt", "a") as out:
                out.write(str(step))

        def train(epochs, steps, grad):
            for epoch in range(epochs):
                for step in range(steps):
                    dist.all_reduce(grad)
                    log(step)  # may fail
                    # end of the step
                dist.barrier()
        """,
        """
        import torch.distributed as dist
        from spmdguard import rank_local, stop_reason, sync_should_stop

        @rank_local(only="main")
        def log(step):
            with open("log.txt", "a") as out:
                out.write(str(step))

        def train(epochs, steps, grad):
            for epoch in range(epochs):
                for step in range(steps):
                    dist.all_reduce(grad)
                    log(step)  # may fail
                    if sync_should_stop():
                        break
                    # end of the step
                if stop_reason():
                    break
                dist.barrier()
        """,
    ),
    example(
        "SPG201",
        "unsafe",
        """
        import torch.distributed as dist
        from spmdguard import has_deferred_error, sync_should_stop

        def step(grad, path):
            dist.all_reduce(grad)
            # keep a record
            with open(path, "a") as log:  # appended
                log.write("done")
            return sync_should_stop(has_deferred_error())
        """,
        """
        import torch.distributed as dist
        from spmdguard import deferring, has_deferred_error, sync_should_stop

        def step(grad, path):
            dist.all_reduce(grad)
            # keep a record
            with deferring("open"):
                with open(path, "a") as log:  # appended
                    log.write("done")
            return sync_should_stop(has_deferred_error())
        """,
    ),
    example(
        "SPG403",
        "safe",
        """
        import torch.distributed as dist

        def share(table):
            for name in {"weight", "bias"}:
                dist.broadcast(table[name], src=0)
        """,
        """
        import torch.distributed as dist

        def share(table):
            for name in sorted({"weight", "bias"}):
                dist.broadcast(table[name], src=0)
        """,
    ),
    example(
        "SPG403",
        "unsafe",
        """
        import torch.distributed as dist

        def share(model, skip):
            table = dict(model.named_parameters())
            for place, name in enumerate(set(table) - set(skip)):
                dist.broadcast(table[name].data, src=0)
        """,
        """
        import torch.distributed as dist

        def share(model, skip):
            table = dict(model.named_parameters())
            for place, name in enumerate(sorted(set(table) - set(skip))):
                dist.broadcast(table[name].data, src=0)
        """,
    ),
    example(
        "SPG601",
        "safe",
        """
        import torch.distributed as dist
        from spmdguard import raise_if_deferred_error

        def finish(report):
            # what went wrong
            raise_if_deferred_error()  # at last
            dist.barrier()
            dist.destroy_process_group()
            report()
        """,
        """
        import torch.distributed as dist
        from spmdguard import raise_if_deferred_error

        def finish(report):
            dist.barrier()
            dist.destroy_process_group()
            # what went wrong
            raise_if_deferred_error()  # at last
            report()
        """,
    ),
    example(
        "SPG601",
        "safe",
        """
        import torch.distributed as dist
        from spmdguard import raise_if_deferred_error

        def main(train):
            try:
                train()
                raise_if_deferred_error()
            finally:
                dist.destroy_process_group()
        """,
        """
        import torch.distributed as dist
        from spmdguard import raise_if_deferred_error

        def main(train):
            try:
                train()
            finally:
                dist.destroy_process_group()
            raise_if_deferred_error()
        """,
    ),
    example(
        "SPG605",
        "safe",
        """
        import torch.distributed as dist

        def main(train):
            dist.init_process_group("nccl")
            try:
                train()
                dist.barrier()
            except Exception:
                dist.destroy_process_group()  # teardown
                raise
            dist.destroy_process_group()
        """,
        """
        from contextlib import suppress

        import torch.distributed as dist

        def main(train):
            dist.init_process_group("nccl")
            try:
                train()
                dist.barrier()
            except Exception:
                with suppress(Exception):
                    dist.destroy_process_group()  # teardown
                raise
            dist.destroy_process_group()
        """,
    ),
    example(
        "SPG701",
        "safe",
        '''
        """A script."""

        import os

        import torch.distributed as dist

        dist.init_process_group(
            "nccl",
            rank=int(os.environ["RANK"]),  # ours
        )
        dist.destroy_process_group()
        ''',
        '''
        """A script."""

        import os
        from datetime import timedelta

        import torch.distributed as dist

        dist.init_process_group(
            "nccl",
            rank=int(os.environ["RANK"]),
            timeout=timedelta(minutes=10),  # ours
        )
        dist.destroy_process_group()
        ''',
    ),
    example(
        "SPG704",
        "safe",
        """
        import os

        import torch.distributed as dist

        def main():
            os.environ['NCCL_BLOCKING_WAIT'] = "1"  # wait
            dist.init_process_group("nccl")
            dist.destroy_process_group()
        """,
        """
        import os

        import torch.distributed as dist

        def main():
            os.environ['TORCH_NCCL_BLOCKING_WAIT'] = "1"  # wait
            dist.init_process_group("nccl")
            dist.destroy_process_group()
        """,
    ),
    example(
        "SPG901",
        "safe",
        """
        import torch.distributed as dist

        dist.barrier()  # spmdguard: ignore[SPG101] -- every rank comes here
        """,
        """
        import torch.distributed as dist

        dist.barrier()
        """,
    ),
]

EXAMPLES += [
    example(
        "SPG307",
        "unsafe",
        """
        import torch.distributed as dist
        from spmdguard import deferring, sync_should_stop

        def train(epochs, batches, step, log):
            for epoch in range(epochs):
                for batch in batches:
                    dist.all_reduce(step(batch))
                    with deferring("log"):
                        log(epoch)
                    if sync_should_stop():
                        break
                # end of the epoch
                dist.barrier()
        """,
        """
        import torch.distributed as dist
        from spmdguard import deferring, stop_reason, sync_should_stop

        def train(epochs, batches, step, log):
            for epoch in range(epochs):
                for batch in batches:
                    dist.all_reduce(step(batch))
                    with deferring("log"):
                        log(epoch)
                    if sync_should_stop():
                        break
                if stop_reason():
                    break
                # end of the epoch
                dist.barrier()
        """,
    ),
    example(
        "SPG308",
        "unsafe",
        """
        import signal

        import torch.distributed as dist

        stop = False

        def handle(signum, frame):
            global stop
            stop = True

        signal.signal(signal.SIGTERM, handle)

        def train(steps, grads):
            for step in range(steps):
                if stop:
                    break
                dist.all_reduce(grads)
        """,
        """
        import signal

        import torch.distributed as dist
        from spmdguard import sync_should_stop

        stop = False

        def handle(signum, frame):
            global stop
            stop = True

        signal.signal(signal.SIGTERM, handle)

        def train(steps, grads):
            for step in range(steps):
                if sync_should_stop(stop):
                    break
                dist.all_reduce(grads)
        """,
    ),
]

_AGREED = {
    "SPG102": ("dist.get_rank() == 0 and batch.empty", ""),
    "SPG302": ("time.monotonic() > limit", "import time\n\n"),
    "SPG303": ("random.random() < 0.1", "import random\n\n"),
    "SPG304": ("os.path.exists('stop')", "import os\n\n"),
    "SPG306": ("socket.gethostname() == host", "import socket\n\n"),
}
for _code, (_condition, _imports) in _AGREED.items():
    _lines = """
    {imports}import torch.distributed as dist
    {guard}
    def train(batches, grad, limit, host):
        for batch in batches:
            batch.loss.backward()
            dist.all_reduce(grad)
            if {condition}:  # enough
                break
    """
    _text = textwrap.dedent(_lines).lstrip("\n")
    _before = _text.format(imports=_imports, guard="", condition=_condition)
    _name = "from spmdguard import sync_should_stop\n"
    _after = _text.format(imports=_imports, guard=_name, condition=f"sync_should_stop({_condition})")
    EXAMPLES.append(Example(_code, "unsafe", _before, _after))
