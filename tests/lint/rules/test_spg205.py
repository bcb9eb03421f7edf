"""SPG205: exceptions raised on some ranks only."""

from __future__ import annotations

from spmdguard_lint.config import Config
from spmdguard_lint.engine import StandardInput, lint

from tests.lint.rules.marked import agree

RAISES = ("SPG101", "SPG102", "SPG205")


def test_raises_by_rank_or_data() -> None:
    """A check on this rank's own loss, on its shard, or on the rank."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        from torch.utils.data import DataLoader

        def on_nan(model, loader: DataLoader):
            for batch in loader:
                loss = model(batch)
                if torch.isnan(loss).any():
                    raise FloatingPointError("NaN")  # SPG205
                dist.all_reduce(loss)

        def by_rank(x, tokens):
            if dist.get_rank() == 0 and not tokens:
                raise ValueError("no tokens on the first rank")  # SPG205
            dist.all_reduce(x)

        def check(batch):
            if batch["x"].numel() == 0:
                raise ValueError("empty")  # SPG205

        def through_a_call(loader: DataLoader):
            for batch in loader:
                check(batch)
                dist.all_reduce(batch["x"])
        """,
        *RAISES,
    )


def test_attempts_that_ranks_repeat_differently() -> None:
    """A raise that a handler catches and goes on after ends no rank: nobody's precondition, whatever else it asks."""
    assert agree(
        """
        import os
        import torch.distributed as dist

        def tries(rank):
            return rank * 2 if rank // 2 == 1 else 2

        def main(x):
            needed = tries(dist.get_rank())
            for attempt in range(3):
                try:
                    if attempt < needed - 1:
                        raise OSError("gone")  # SPG205
                    try:
                        if dist.get_rank() == dist.get_world_size() - 1:
                            raise ValueError("late")
                        dist.all_reduce(x)
                    except Exception:
                        dist.all_reduce(x)
                    break
                except OSError:
                    continue
            dist.barrier()

        def of_all(x, needed):
            for attempt in range(3):
                try:
                    if attempt < needed - 1:
                        raise OSError("gone")
                    dist.all_reduce(x)
                    break
                except OSError:
                    continue

        def ended_in_order(x, limit):
            try:
                if dist.get_rank() >= limit:
                    raise ValueError(limit)
                dist.all_reduce(x)
            except ValueError:
                print("too many")
                raise
        """,
        *RAISES,
    )


def test_shared_checks_are_silent() -> None:
    """Arguments, configuration and agreed verdicts end all ranks; a caught raise ends none."""
    assert agree(
        """
        import os
        import torch
        import torch.distributed as dist
        from torch.utils.data import DataLoader

        def arguments(x, op):
            if op not in ("sum", "mean"):
                raise ValueError(op)
            dist.all_reduce(x)

        def world(x, groups):
            if dist.get_world_size() % groups:
                raise ValueError(groups)
            dist.all_reduce(x)

        def agreed(model, loader: DataLoader):
            for batch in loader:
                loss = model(batch)
                bad = torch.isnan(loss).int()
                dist.all_reduce(bad)
                if bad.item():
                    raise FloatingPointError("NaN")

        def precondition(path, x):
            if not os.path.exists(path):
                raise FileNotFoundError(path)
            dist.all_reduce(x)

        def bounds(x, first, last):
            if not first <= dist.get_rank() < last:
                raise ValueError((first, last))
            dist.all_reduce(x)

        def after_the_last(x, limit):
            dist.all_reduce(x)
            if dist.get_rank() == 0 and x > limit:
                raise ValueError(x)
        """,
        *RAISES,
    )


def test_preconditions_are_possible() -> None:
    """A precondition on the file system is there for those who ask for all certainties."""
    source = b"""
import os
import torch.distributed as dist

def load(path, x):
    if not os.path.exists(path):
        raise FileNotFoundError(path)
    dist.all_reduce(x)
"""
    config = Config(select=("SPG205",), min_certainty="possible")
    found = lint([], config, stdin=StandardInput(source, "snippet.py")).findings
    assert [(f.site.start.row, f.certainty) for f in found] == [(7, "possible")]


def test_calls_that_cannot_succeed() -> None:
    """A tensor, a set or an instance as JSON, on one rank before a collective of all."""
    assert agree(
        """
        import json
        import numpy as np
        import torch
        import torch.distributed as dist
        import torch.nn.functional as F
        from pathlib import Path

        class Point:
            def __init__(self, x):
                self.x = x

        def row(step, grad):
            return json.dumps({"step": step, "norm": grad.norm()})  # SPG205

        def tensor(steps, weight):
            for step in range(steps):
                grad = torch.zeros(3) - weight
                dist.all_reduce(grad)
                if dist.get_rank() == 0:
                    print(row(step, grad))

        def loss(x, y, out):
            if dist.get_rank() == 0:
                json.dump([1, F.mse_loss(x, y)], out)  # SPG205
            dist.barrier()

        def names(x, out):
            seen = {1, 2}
            if not dist.get_rank():
                json.dump({"seen": seen}, out)  # SPG205
            dist.all_reduce(x)
            if not dist.get_rank():
                json.dump({"point": Point(3)}, out)  # SPG205
            dist.all_reduce(x)

        def array_and_path(x, out):
            if dist.get_rank() == 0:
                print(json.dumps({"x": torch.ones(3).cpu().numpy()}))  # SPG205
            dist.barrier()
            if dist.get_rank() == 0:
                out.write(json.dumps({"best": Path("a"), "mean": np.mean([1, 2])}))  # SPG205
            dist.barrier()
        """,
        "SPG205",
    )


def test_calls_that_may_succeed() -> None:
    """Numbers, unknown values, a default, an error that is kept, a call of all ranks or behind the last collective."""
    assert agree(
        """
        import json
        import numpy as np
        import torch
        import torch.distributed as dist
        from pathlib import Path
        from spmdguard import deferring

        def fine(x, out, metrics):
            norm = torch.zeros(3).norm()
            if dist.get_rank() == 0:
                json.dump({"norm": norm.item(), "all": norm.view(-1).tolist(), "n": norm.numel()}, out)
                json.dump({"norm": norm}, out, default=str)
                json.dump(metrics, out)
                json.dump({"x": float(norm), "shape": list(norm.shape)}, out)
                json.dump({"either": norm if metrics else 3, "mean": np.mean([1.0])}, out)
                json.dump({"path": str(Path("a")), "name": Path("a").name}, out)
                with deferring("row"):
                    json.dump({"norm": norm}, out)
                try:
                    json.dump({"norm": norm}, out)
                except TypeError:
                    print("no")
            dist.all_reduce(x)

        def all_ranks(x, out):
            json.dump({"norm": torch.zeros(3).norm()}, out)
            dist.all_reduce(x)

        class Row(dict):
            pass

        def converted(x, out):
            row = {"norm": torch.zeros(3).norm(), "sizes": {1, 2}}
            row["sizes"] = sorted(row["sizes"])
            for key, value in row.items():
                if isinstance(value, torch.Tensor):
                    row[key] = value.item()
            other = {"norm": torch.zeros(3).norm()}
            other.pop("norm")
            if dist.get_rank() == 0:
                json.dump([row, other, Row(a=1)], out)
            dist.all_reduce(x)

        def at_the_end(x, out):
            dist.all_reduce(x)
            if dist.get_rank() == 0:
                json.dump({"norm": torch.zeros(3).norm()}, out)
        """,
        "SPG205",
    )


def test_who_has_polled_for_too_long_may_give_up() -> None:
    """A limit on waiting for a file ends what would hang anyway; limits on work, and caught ones, part ranks."""
    assert agree(
        """
        import os
        import time
        import torch.distributed as dist

        def wait_for(is_there, limit):
            begin = time.monotonic()
            while not is_there():
                if time.monotonic() - begin > limit:
                    raise TimeoutError("not there")
                time.sleep(0.2)

        def publish(path, limit):
            dist.barrier()
            wait_for(path.exists, limit)
            dist.barrier()

        def check(deadline):
            if time.time() > deadline:
                raise RuntimeError("too late")

        def poll(path):
            deadline = time.time() + 60
            while True:
                if os.path.exists(path):
                    break
                check(deadline)
                time.sleep(1)
            dist.barrier()

        def train(loader, model, limit):
            begin = time.time()
            for batch in loader:
                if time.time() - begin > limit:
                    raise TimeoutError("too slow")  # SPG205
                dist.all_reduce(model(batch))

        def busy(items, limit):
            begin = time.time()
            for item in items:
                if time.time() - begin > limit:
                    raise TimeoutError("too slow")  # SPG205
                item.work()
            dist.barrier()

        def caught(path, limit):
            begin = time.time()
            try:
                while not os.path.exists(path):
                    if time.time() - begin > limit:
                        raise TimeoutError("not there")  # SPG205
                    time.sleep(1)
                dist.barrier()
            except TimeoutError:
                print("without it")
            dist.barrier()
        """,
        "SPG205",
    )


def test_a_call_before_its_time_is_wrong_on_every_rank() -> None:
    """``state_dict`` asks if what one rank collects was collected; what its own disk lacks is another matter."""
    assert agree(
        """
        import os
        import torch.distributed as dist

        class Sharded:
            def __init__(self):
                self.states = []

            def consolidate(self, to=0):
                self.states = []
                for rank in range(dist.get_world_size()):
                    box = [rank]
                    dist.broadcast_object_list(box, src=rank)
                    if dist.get_rank() == to:
                        self.states.append(box[0])

            def state_dict(self):
                if not self.states:
                    raise RuntimeError("call consolidate() first")
                return self.states

        def train(steps, sharded, x):
            sharded = Sharded()
            for step in range(steps):
                dist.all_reduce(x)
                sharded.consolidate()
                if dist.get_rank() == 0:
                    print(sharded.state_dict())

        def own(path, x):
            if dist.get_rank() == 0:
                if not os.listdir(path):
                    raise RuntimeError("no rows")  # SPG205
            dist.all_reduce(x)
        """,
        "SPG205",
    )


def test_checks_behind_a_test_that_sends_ranks_away() -> None:
    """A check that only the ranks come to which an early return has left, in a loop, by a helper, in a method."""
    assert agree(
        """
        import math
        import torch.distributed as dist

        def check(values):
            if any(not math.isfinite(value) for value in values):
                raise RuntimeError(f"not finite: {values}")

        def report(rank, values):
            if rank != 0:
                return
            check(values)  # SPG205
            print(values)

        def train(model, steps):
            for _ in range(steps):
                loss = model(1)
                dist.all_reduce(loss)
                report(dist.get_rank(), [loss.item()])

        class Log:
            def __init__(self):
                self.main = dist.get_rank() == 0
            def write(self, loss):
                if not self.main:
                    return
                if not math.isfinite(loss):
                    raise ValueError(loss)  # SPG205
                print(loss)

        def train_with_log(model, steps):
            log = Log()
            for _ in range(steps):
                loss = model(1)
                dist.all_reduce(loss)
                log.write(loss.item())
        """,
        *RAISES,
    )


def test_checks_that_all_ranks_come_to() -> None:
    """A check before the early return, one behind it whose raise is caught, and one after which nobody waits."""
    assert agree(
        """
        import math
        import torch.distributed as dist

        def check(values):
            if any(not math.isfinite(value) for value in values):
                raise RuntimeError(f"not finite: {values}")

        def report(rank, values):
            check(values)
            if rank != 0:
                return
            print(values)

        def careful(rank, values):
            if rank != 0:
                return
            try:
                check(values)
            except RuntimeError as error:
                print(error)

        def train(model, steps):
            for _ in range(steps):
                loss = model(1)
                dist.all_reduce(loss)
                report(dist.get_rank(), [loss.item()])
                careful(dist.get_rank(), [loss.item()])

        def at_the_end(model):
            loss = model(1)
            dist.all_reduce(loss)
            if dist.get_rank() != 0:
                return
            check([loss.item()])
        """,
        *RAISES,
    )
