"""Ranks that poll for something and end where it does not come: a precondition, as a read that fails is."""

from __future__ import annotations

from tests.lint.rules.marked import agree

RULES = ("SPG102", "SPG205", "SPG302", "SPG304")


def test_waits_that_give_up() -> None:
    """By a clock or after some attempts, on all ranks or on some, in place or in a function."""
    assert agree(
        """
        import time

        import torch.distributed as dist

        def wait_until(check, limit):
            t0 = time.monotonic()
            while not check():
                if time.monotonic() - t0 > limit:
                    raise TimeoutError("not seen")
                time.sleep(0.2)

        def wait_for(path, limit):
            deadline = time.monotonic() + limit
            while time.monotonic() < deadline:
                if path.exists():
                    return
                time.sleep(1)
            raise TimeoutError(path)

        def wait_n(path, n):
            for _ in range(n):
                if path.exists():
                    return
                time.sleep(1)
            raise TimeoutError(path)

        def by_call(path, x):
            if dist.get_rank() == 0:
                path.touch()
            else:
                wait_until(path.exists, 30)
            dist.all_reduce(x)

        def in_place(path, x, limit):
            if dist.get_rank() != 0:
                begun = time.time()
                while not path.exists():
                    if time.time() > begun + limit:
                        raise RuntimeError("gave up")
                    time.sleep(1)
            dist.all_reduce(x)

        def deadline(path, x, limit):
            if dist.get_rank() != 0:
                deadline = time.time() + limit
                while time.time() < deadline:
                    if path.exists():
                        break
                    time.sleep(1)
                else:
                    raise RuntimeError("gave up")
            dist.all_reduce(x)

        def attempts(path, x, limit):
            if dist.get_rank() != 0:
                for _ in range(100):
                    if path.exists():
                        break
                    time.sleep(1)
                else:
                    raise RuntimeError("gave up")
            dist.all_reduce(x)

        def all_wait(path, x):
            wait_for(path, 5)
            dist.barrier()

        def others_wait(path, x):
            if dist.get_rank() > 0:
                wait_for(path, 5)
            dist.barrier()

        def others_wait_n(path, x):
            if dist.get_rank() > 0:
                wait_n(path, 5)
            dist.barrier()
        """,
        *RULES,
    )


def test_waits_after_which_ranks_part() -> None:
    """The rank goes on without what it has waited for, or a deadline stands between the steps."""
    assert agree(
        """
        import time

        import torch.distributed as dist

        def bad_after(path, limit):
            deadline = time.monotonic() + limit
            while time.monotonic() < deadline:  # SPG302
                if path.exists():
                    return
                time.sleep(1)
            dist.barrier()

        def bad_flag(path, limit):
            deadline = time.monotonic() + limit
            seen = False
            while time.monotonic() < deadline:
                if path.exists():
                    seen = True
                    break
                time.sleep(1)
            if seen:  # SPG302
                dist.barrier()

        def bad_step(x, limit):
            begun = time.time()
            for i in range(100):
                if time.time() - begun > limit:
                    raise RuntimeError("late")  # SPG205
                dist.all_reduce(x)

        def by_rank(path, x, limit):
            begun = time.time()
            for i in range(100):
                if dist.get_rank() == 0 and time.time() - begun > limit:
                    raise RuntimeError("late")  # SPG205
                dist.all_reduce(x)
        """,
        *RULES,
    )


def test_wait_that_somebody_catches() -> None:
    """The rank that has waited in vain lives on, and leaves the others."""
    assert agree(
        """
        import time

        import torch.distributed as dist

        def wait_for(path, limit):
            deadline = time.monotonic() + limit
            while time.monotonic() < deadline:  # SPG302
                if path.exists():
                    return
                time.sleep(1)
            raise TimeoutError(path)

        def bad_caught(path, x):
            try:
                wait_for(path, 5)
            except TimeoutError:
                return
            dist.barrier()
        """,
        *RULES,
    )


def test_waits_for_files() -> None:
    """What each rank sees of the file system ends its wait, and nothing else."""
    assert agree(
        """
        import os
        import time
        from pathlib import Path

        import torch.distributed as dist

        def wait_a(path: Path, limit):
            deadline = time.monotonic() + limit
            while time.monotonic() < deadline:
                if path.exists():
                    return
                time.sleep(1)
            raise TimeoutError(path)

        def use_a(path, x):
            wait_a(Path(path), 5)
            dist.barrier()

        def use_a1(path, x):
            if dist.get_rank() > 0:
                wait_a(Path(path), 5)
            dist.barrier()

        def wait_b(path, limit):
            begun = time.time()
            while not os.path.exists(path):
                if time.time() - begun > limit:
                    raise TimeoutError(path)
                time.sleep(1)

        def use_b(path, x):
            wait_b(path, 5)
            dist.barrier()

        def wait_c(path, limit):
            begun = time.time()
            while True:
                if os.path.exists(path):
                    return
                if time.time() - begun > limit:
                    raise TimeoutError(path)
                time.sleep(1)

        def use_c(path, x):
            wait_c(path, 5)
            dist.barrier()

        def wait_d(path, n):
            for _ in range(n):
                if os.path.isfile(path):
                    break
                time.sleep(1)
            else:
                raise TimeoutError(path)

        def use_d(path, x):
            wait_d(path, 5)
            dist.barrier()

        def wait_g(path, limit):
            deadline = time.monotonic() + limit
            while time.monotonic() < deadline:
                if os.path.exists(path):
                    return True
                time.sleep(1)
            return False

        def use_g(path, x):
            if not wait_g(path, 5):
                raise RuntimeError("not seen")
            dist.barrier()
        """,
        *RULES,
    )


def test_waits_for_files_that_part_ranks() -> None:
    """Those that see it meet, and the others go on without them."""
    assert agree(
        """
        import os
        import time

        import torch.distributed as dist

        def wait_g(path, limit):
            deadline = time.monotonic() + limit
            while time.monotonic() < deadline:
                if os.path.exists(path):
                    return True
                time.sleep(1)
            return False

        def bad_g(path, x):
            if wait_g(path, 5):
                dist.barrier()  # SPG304

        def bad_c(path, limit):
            begun = time.time()
            while True:
                if os.path.exists(path):
                    dist.barrier()  # SPG304
                    return
                if time.time() - begun > limit:  # SPG302
                    return
                time.sleep(1)
        """,
        *RULES,
    )
