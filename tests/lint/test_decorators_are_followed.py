"""Decorators and hooks of the project's own run where the library or the language runs them."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_long_decorators_with_options_that_try_again() -> None:
    """A decorator is followed at any usual length; a function without a collective may be tried again."""
    assert agree(
        """
        import functools
        import logging
        import time
        import torch.distributed as dist

        log = logging.getLogger(__name__)

        def patiently(times, pause=0.05, factor=2.0):
            '''Try again after an OSError.

            Waits longer each time; gives up with a warning.
            '''

            def wrap(fn):
                @functools.wraps(fn)
                def again(*args, **kwargs):
                    wait = pause
                    for attempt in range(times):
                        try:
                            return fn(*args, **kwargs)
                        except OSError as exc:
                            log.warning("attempt %d: %s", attempt, exc)
                            time.sleep(wait)
                            wait *= factor
                    return None

                return again

            return wrap

        def stubbornly(fn):
            '''Try until it works.'''

            @functools.wraps(fn)
            def again(*args, **kwargs):
                while True:
                    try:
                        return fn(*args, **kwargs)
                    except (OSError, TimeoutError) as exc:
                        log.warning("once more: %s", exc)
                        time.sleep(1.0)

            return again

        def write(path, line):
            with open(path, "a") as f:
                f.write(line)

        class Reporter:
            @stubbornly
            def report(self, loss):
                dist.all_reduce(loss)  # SPG202
                write("mean.log", str(loss))

        @patiently(times=3)
        def report(step, loss):
            mean = loss.clone()
            dist.all_reduce(mean)  # SPG202
            write(f"mean-{dist.get_rank()}.log", f"{step} {mean}")

        @patiently(times=3)
        def keep(step, mean):
            write(f"kept-{dist.get_rank()}.log", f"{step} {mean}")

        def main(losses):
            for step, loss in enumerate(losses):
                report(step, loss)
                Reporter().report(loss)
                dist.all_reduce(loss)
                keep(step, loss)
            dist.barrier()
        """,
        "SPG102",
        "SPG202",
        "SPG203",
        "SPG206",
    )


def test_hooks_of_forward_passes() -> None:
    """A hook on a module sees this rank's own batch: what it raises ends one rank's loop, unless all are told."""
    assert agree(
        """
        import functools
        import torch
        import torch.distributed as dist
        from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
        from torch.nn.parallel import DistributedDataParallel

        class RanAway(Exception):
            pass

        class Alarm:
            def __init__(self, limit):
                self.limit = limit
                self.peak = 0.0

            def __call__(self, module, inputs, output):
                self.peak = output.detach().abs().max().item()
                if self.peak > self.limit:
                    raise RanAway(f"{self.peak:.1f}")  # SPG205

        class Gauge:
            def __init__(self):
                self.peak = 0.0

            def __call__(self, module, inputs, output):
                self.peak = output.detach().abs().max().item()

            def rings(self, limit):
                highest = torch.tensor([self.peak])
                dist.all_reduce(highest, op=dist.ReduceOp.MAX)
                return highest.item() > limit

        def by_object(alarm: Alarm, batches):
            net = torch.nn.Linear(8, 8)
            net.register_forward_hook(alarm)
            model = DistributedDataParallel(net)
            try:
                for x in batches:
                    model(x).pow(2).mean().backward()
            except RanAway as reason:
                print("stopped by the alarm:", reason)
            dist.barrier()

        def looks(limit, module, inputs):
            if inputs[0].isnan().any():
                raise ValueError("not a number")  # SPG205

        def by_partial(net, batches):
            for layer in net.children():
                layer.register_forward_pre_hook(functools.partial(looks, 3.0))
            model = FSDP(net)
            for x in batches:
                try:
                    loss = model(x).sum()
                except ValueError:
                    continue
                loss.backward()

        class Trainer:
            def __init__(self, net):
                self.model = DistributedDataParallel(net)
                for layer in net.modules():
                    layer.register_forward_hook(self.watch)

            def watch(self, module, inputs, output):
                if not torch.isfinite(output).all():
                    raise FloatingPointError(module)  # SPG205

            def fit(self, batches):
                try:
                    for x in batches:
                        self.model(x).sum().backward()
                except FloatingPointError as error:
                    print(error)
                dist.barrier()

        def agreed(gauge: Gauge, batches):
            net = torch.nn.Linear(8, 8)
            net.register_forward_hook(gauge)
            model = DistributedDataParallel(net)
            for x in batches:
                loss = model(x).pow(2).mean()
                if gauge.rings(9.0):
                    break
                loss.backward()
            dist.barrier()

        def told(limit, module, inputs, output):
            peak = output.detach().abs().max()
            dist.all_reduce(peak, op=dist.ReduceOp.MAX)
            if peak.item() > limit:
                raise RanAway("all of us")

        def by_all(net, batches):
            net.register_forward_hook(functools.partial(told, 3.0))
            model = DistributedDataParallel(net)
            try:
                for x in batches:
                    model(x).sum().backward()
            except RanAway:
                print("stopped")
            dist.barrier()

        if __name__ == "__main__":
            Trainer(torch.nn.Linear(8, 8)).fit([torch.ones(8)])
        """,
        "SPG101",
        "SPG102",
        "SPG202",
        "SPG205",
    )


def test_objects_that_decorate() -> None:
    """An object with a ``__call__`` decorates as a function does, and so does a class of which the name becomes one."""
    assert agree(
        """
        import functools
        import torch.distributed as dist

        class OnRank:
            def __init__(self, wanted):
                self.wanted = wanted

            def __call__(self, fn):
                @functools.wraps(fn)
                def inner(*args):
                    if dist.get_rank() == self.wanted:
                        return fn(*args)

                return inner

        class Lonely:
            def __init__(self, fn):
                self.fn = fn

            def __call__(self, *args):
                if dist.get_rank() == 0:
                    self.fn(*args)

        class Counted:
            def __init__(self, fn):
                self.fn, self.calls = fn, 0

            def __call__(self, *args):
                self.calls += 1
                return self.fn(*args)

        class First:
            def __call__(self, fn):
                return lambda *args: fn(*args) if dist.get_rank() == 0 else None

        first = First()
        any_rank = OnRank

        @any_rank(0)
        def show(loss):
            dist.all_reduce(loss)  # SPG104

        @OnRank(wanted=0)
        def say(loss):
            print(loss)

        @Lonely
        def tell(loss):
            dist.all_reduce(loss)  # SPG104

        @first
        def report(loss):
            dist.all_reduce(loss)  # SPG105

        @Counted
        def add(loss):
            dist.all_reduce(loss)

        class Trainer:
            @OnRank(0)
            def log(self, loss):
                print(loss)

        def main(losses):
            for loss in losses:
                show(loss)
                tell(loss)
                report(loss)
                add(loss)
                say(loss)
                Trainer().log(loss)
        """,
        "SPG101",
        "SPG102",
        "SPG104",
        "SPG105",
    )
