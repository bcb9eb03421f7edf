"""SPG307: an agreed stop that ends the inner of two loops."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_break_of_the_inner_loop() -> None:
    """The outer loop goes on after the inner one was left by agreement."""
    assert agree(
        """
        import torch.distributed as dist
        from spmdguard import defer_error, deferring, has_deferred_error, rank_local, sync_should_stop, try_or_defer

        @rank_local
        def log(step):
            with open("log", "a") as out:
                out.write(str(step))

        def train(epochs, batches, grad):
            for epoch in range(epochs):
                for step in batches:
                    dist.all_reduce(grad)
                    log(step)
                    if sync_should_stop(has_deferred_error()):
                        break  # SPG307
                dist.barrier()
        """,
        "SPG307",
    )


def test_return_of_the_inner_function() -> None:
    """A function that returns on the stop, called in a loop that does not ask."""
    assert agree(
        """
        import torch.distributed as dist
        from spmdguard import defer_error, deferring, has_deferred_error, rank_local, sync_should_stop, try_or_defer

        @rank_local
        def log(step):
            with open("log", "a") as out:
                out.write(str(step))

        def epoch(batches, grad):
            for step in batches:
                dist.all_reduce(grad)
                log(step)
                if sync_should_stop(has_deferred_error()):
                    return  # SPG307

        def main(batches, grad):
            for _ in range(9):
                epoch(batches, grad)

        main([1], None)
        """,
        "SPG307",
    )


def test_named_verdict() -> None:
    """The verdict may have a name, and the inner loop may be a while loop."""
    assert agree(
        """
        import torch.distributed as dist
        from spmdguard import defer_error, deferring, has_deferred_error, rank_local, sync_should_stop, try_or_defer

        @rank_local
        def log(step):
            with open("log", "a") as out:
                out.write(str(step))

        def train(epochs, grad):
            for epoch in range(epochs):
                left = 5
                while left:
                    left -= 1
                    dist.all_reduce(grad)
                    log(left)
                    stop = sync_should_stop(has_deferred_error())
                    if stop:
                        break  # SPG307
        """,
        "SPG307",
    )


def test_carried_outward() -> None:
    """Asking the same verdict, a flag, a return value or the group again is silent."""
    assert agree(
        """
        import torch.distributed as dist
        from spmdguard import defer_error, deferring, has_deferred_error, rank_local, sync_should_stop, try_or_defer

        @rank_local
        def log(step):
            with open("log", "a") as out:
                out.write(str(step))

        def same_name(epochs, batches, grad):
            for epoch in range(epochs):
                stop = False
                for step in batches:
                    dist.all_reduce(grad)
                    log(step)
                    stop = sync_should_stop(has_deferred_error())
                    if stop:
                        break
                if stop:
                    break

        def flag(epochs, batches, grad):
            done = False
            for epoch in range(epochs):
                for step in batches:
                    dist.all_reduce(grad)
                    log(step)
                    if sync_should_stop(has_deferred_error()):
                        done = True
                        break
                if done:
                    break

        def asked_again(epochs, batches, grad):
            for epoch in range(epochs):
                for step in batches:
                    dist.all_reduce(grad)
                    log(step)
                    if sync_should_stop(has_deferred_error()):
                        break
                if sync_should_stop(has_deferred_error()):
                    break

        def returned(epochs, batches, grad):
            for epoch in range(epochs):
                for step in batches:
                    dist.all_reduce(grad)
                    log(step)
                    if sync_should_stop(has_deferred_error()):
                        return

        def for_else(epochs, batches, grad):
            for epoch in range(epochs):
                for step in batches:
                    dist.all_reduce(grad)
                    log(step)
                    if sync_should_stop(has_deferred_error()):
                        break
                else:
                    continue
                break

        def raised(epochs, batches, grad):
            for epoch in range(epochs):
                for step in batches:
                    dist.all_reduce(grad)
                    log(step)
                    if sync_should_stop(has_deferred_error()):
                        raise RuntimeError("stopped")
        """,
        "SPG307",
    )


def test_returned_verdict() -> None:
    """A caller that tests what the function returns is silent."""
    assert agree(
        """
        import torch.distributed as dist
        from spmdguard import defer_error, deferring, has_deferred_error, rank_local, sync_should_stop, try_or_defer

        @rank_local
        def log(step):
            with open("log", "a") as out:
                out.write(str(step))

        def epoch(batches, grad):
            for step in batches:
                dist.all_reduce(grad)
                log(step)
                if sync_should_stop(has_deferred_error()):
                    return False
            return True

        def main(batches, grad):
            for _ in range(9):
                if not epoch(batches, grad):
                    break

        main([1], None)
        """,
        "SPG307",
    )


def test_single_loop() -> None:
    """One loop has no outer one."""
    assert agree(
        """
        import torch.distributed as dist
        from spmdguard import defer_error, deferring, has_deferred_error, rank_local, sync_should_stop, try_or_defer

        @rank_local
        def log(step):
            with open("log", "a") as out:
                out.write(str(step))

        def train(batches, grad):
            for step in batches:
                dist.all_reduce(grad)
                log(step)
                if sync_should_stop(has_deferred_error()):
                    break
        """,
        "SPG307",
    )


def test_miss_while_on_the_verdict() -> None:
    """Known miss: an inner while loop whose condition is the verdict."""
    assert agree(
        """
        import torch.distributed as dist
        from spmdguard import defer_error, deferring, has_deferred_error, rank_local, sync_should_stop, try_or_defer

        @rank_local
        def log(step):
            with open("log", "a") as out:
                out.write(str(step))

        def train(epochs, grad):
            for epoch in range(epochs):
                stop = False
                while not stop:
                    dist.all_reduce(grad)
                    log(epoch)
                    stop = sync_should_stop(has_deferred_error())
        """,
        "SPG307",
    )


def test_leaving_the_outer_loop_for_the_reason_is_silent() -> None:
    """After an agreed stop every rank has the same reason, so the outer loop may ask for it without a collective."""
    assert agree(
        """
        import torch.distributed as dist
        from spmdguard import deferring, stop_reason, sync_should_stop

        def train(folds, epochs, batches, step, log):
            for fold in folds:
                for epoch in range(epochs):
                    for batch in batches:
                        dist.all_reduce(step(batch))
                        with deferring("log"):
                            log(epoch)
                        if sync_should_stop():
                            break
                    if stop_reason():
                        break
                if stop_reason() is not None:
                    break

        def only_one_of_two(folds, epochs, batches, step, log):
            for fold in folds:
                for epoch in range(epochs):
                    for batch in batches:
                        dist.all_reduce(step(batch))
                        with deferring("log"):
                            log(epoch)
                        if sync_should_stop():
                            break
                    if stop_reason():
                        break  # SPG307
        """,
        "SPG307",
    )


def test_loop_after_the_stop() -> None:
    """A loop that comes after the one that was left is not one that goes on around it."""
    assert agree(
        """
        import torch.distributed as dist
        from spmdguard import has_deferred_error, sync_should_stop

        def drain(pending):
            return [pending.pop() for _ in range(len(pending))]

        def train(batches, grad, pending):
            for batch in batches:
                dist.all_reduce(grad)
                if sync_should_stop(has_deferred_error()):
                    break
            drain(pending)
            for one in pending:
                print(one)
        """,
        "SPG307",
    )
