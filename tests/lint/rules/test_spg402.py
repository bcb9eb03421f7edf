"""SPG402: while loops that end on this rank's own state."""

from __future__ import annotations

from tests.lint.rules.marked import agree

LOOPS = ("SPG101", "SPG102", "SPG401", "SPG402")


def test_local_conditions() -> None:
    """A local error, a local queue, the rank itself."""
    assert agree(
        """
        import torch.distributed as dist
        from torch.utils.data import DataLoader

        def by_rank(x):
            turns = 0
            while turns < dist.get_rank():
                dist.all_reduce(x)  # SPG402
                turns += 1

        def by_error(step, loader: DataLoader, tolerance):
            for batch in loader:
                error = batch["x"].norm()
                while error > tolerance:
                    dist.all_reduce(batch["x"])  # SPG402
                    error = error / 2

        def by_share(files, x):
            todo = files[dist.get_rank() :: dist.get_world_size()]
            while todo:
                dist.all_reduce(x)  # SPG402
                todo.pop()
        """,
        *LOOPS,
    )


def test_shared_conditions_are_silent() -> None:
    """A reduced error, a count that all ranks share, an endless loop with an agreed break."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        from torch.utils.data import DataLoader

        def reduced(step, tolerance):
            error = step()
            dist.all_reduce(error)
            while error > tolerance:
                error = step()
                dist.all_reduce(error)

        def counted(x, turns):
            done = 0
            while done < turns:
                dist.all_reduce(x)
                done += 1

        def agreed(step, flag):
            while True:
                flag.fill_(step())
                dist.all_reduce(flag)
                if flag.item():
                    break
        """,
        *LOOPS,
    )


def test_neighbours_that_swap_until_a_number_is_small() -> None:
    """Each rank ends by the change in its own part; a number that ranks share, and a token that comes back, end all."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def swap(u, left, right):
            ops = [dist.P2POp(dist.isend, u[1:2], left), dist.P2POp(dist.irecv, u[-1:], right)]
            for work in dist.batch_isend_irecv(ops):
                work.wait()

        def sweep(u):
            new = 0.5 * (u[:-2] + u[2:])
            change = (new - u[1:-1]).abs().max()
            u[1:-1] = new
            return change

        def start():
            u = torch.zeros(66)
            u[0] = 1.0 if dist.get_rank() == 0 else 0.0
            return u

        def own(left, right):
            u = start()
            while (change := sweep(u)) > 1e-4:  # SPG402
                swap(u, left, right)

        def plain(left, right, tolerance):
            u = start()
            error = u.norm().item()
            while error > tolerance:  # a known miss: computed at the end of a round
                sent = dist.isend(u[1:2], left)
                dist.recv(u[-1:], right)
                sent.wait()
                error = torch.linalg.norm(u).item()

        def shared(left, right):
            u = start()
            change = torch.ones(())
            while change > 1e-4:
                swap(u, left, right)
                change = sweep(u)
                dist.all_reduce(change, op=dist.ReduceOp.MAX)

        def by_token(left, right):
            token = torch.full((1,), float(dist.get_rank()))
            while token.item() > 0:
                dist.recv(token, left)
                dist.send(token - 1, right)

        def counted(left, right, turns):
            u, turn = start(), 0
            while turn < turns:
                swap(u, left, right)
                turn += 1

        def led(left, right):
            u = start()
            if dist.get_rank() == 0:
                while u.sum() > 1:
                    swap(u, left, right)
        """,
        "SPG402",
    )


def test_loops_over_an_object_that_one_rank_feeds() -> None:
    """An iterator of the project's own, given without a type, ends by what its methods have been told."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        class StoppingCounter:
            def __init__(self, limit, patience):
                self.limit, self.patience = limit, patience
                self.current, self.best, self.worse = 0, float("inf"), 0

            def feed(self, loss):
                self.worse = 0 if loss < self.best else self.worse + 1
                self.best = min(self.best, loss)

            def __iter__(self):
                while self.current < self.limit and self.worse < self.patience:  # SPG402
                    self.current += 1
                    yield self.current

        class EpochSchedule:
            def __init__(self, limit):
                self.limit, self.stopped = limit, False

            def tell(self, loss):
                self.stopped = loss < 0.1

            def __iter__(self):
                for epoch in range(self.limit):
                    if self.stopped:
                        break
                    yield epoch

        class RoundsOfOne:
            def __init__(self, limit):
                self.limit, self.ended = limit, False

            def end(self, loss):
                self.ended = loss < 0.1

            def __iter__(self):
                for number in range(self.limit):
                    if self.ended:
                        break  # SPG102
                    yield number

        def step(x):
            total = torch.zeros(2) + x
            dist.all_reduce(total)
            return total[0].item()

        class Brain:
            def __init__(self, counter):
                self.counter = counter

            def on_stage_end(self, loss):
                self.counter.feed(loss)

            def fit(self, x):
                for _ in self.counter:
                    loss = step(x)
                    if dist.get_rank() == 0:
                        self.on_stage_end(loss)

        def by_parameter(counter, x):
            for _ in counter:
                loss = step(x)
                if dist.get_rank() == 0:
                    counter.feed(loss)

        def told_one(rounds, x):
            for _ in rounds:
                loss = step(x)
                if dist.get_rank() == 0:
                    rounds.end(loss)

        def before_a_loop(rounds: RoundsOfOne, x):
            if dist.get_rank() == 0:
                rounds.ended = x.item() > 0
            if rounds.ended:
                return  # SPG102
            dist.all_reduce(x)

        def fed_by_all(schedule, x):
            for epoch in schedule:
                loss = step(x)
                schedule.tell(loss)
                if dist.get_rank() == 0:
                    print(epoch, loss)
        """,
        "SPG102",
        "SPG401",
        "SPG402",
    )
