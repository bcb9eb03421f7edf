"""SPG601: an error kept by one rank is raised before the teardown of all."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_raise_before_barrier_and_destroy() -> None:
    """A kept error raised in front of the barrier or the destruction is reported at the raise."""
    assert agree(
        """
        import torch.distributed as dist
        from spmdguard import raise_if_deferred_error

        def barrier_next():
            raise_if_deferred_error()  # SPG601
            dist.barrier()
            dist.destroy_process_group()

        def destroy_next():
            raise_if_deferred_error()  # SPG601
            dist.destroy_process_group()
        """,
        "SPG601",
    )


def test_raise_on_one_arm() -> None:
    """Raising on the main rank only is no better."""
    assert agree(
        """
        import torch.distributed as dist
        import spmdguard as sg

        def end(model):
            if sg.is_main_process():
                print("done")
                sg.raise_if_deferred_error()  # SPG601
            dist.barrier()
        """,
        "SPG601",
    )


def test_teardown_through_helpers() -> None:
    """The teardown may stand in a function or method that is called later."""
    assert agree(
        """
        import torch.distributed as dist
        from spmdguard import raise_if_deferred_error as surface

        class Job:
            def close(self):
                dist.barrier()
                dist.destroy_process_group()

            def finish(self):
                surface()  # SPG601
                self.close()

        def main():
            job = Job()
            job.finish()
        """,
        "SPG601",
    )


def test_finally_block() -> None:
    """In a finally block the order counts as anywhere."""
    assert agree(
        """
        import torch.distributed as dist
        from spmdguard import raise_if_deferred_error

        def main(train):
            try:
                train()
            finally:
                raise_if_deferred_error()  # SPG601
                dist.destroy_process_group()
        """,
        "SPG601",
    )


def test_each_epoch() -> None:
    """A raise in every round is followed by the collectives of the next."""
    assert agree(
        """
        import torch.distributed as dist
        from spmdguard import raise_if_deferred_error

        def main(epochs, grad):
            for _ in range(epochs):
                dist.all_reduce(grad)
                raise_if_deferred_error()  # SPG601
        """,
        "SPG601",
    )


def test_stored_exception() -> None:
    """An exception bound by an except clause and raised later is a kept error too."""
    assert agree(
        """
        import torch.distributed as dist

        def main(upload):
            trouble = None
            try:
                upload()
            except OSError as error:
                trouble = error
            if trouble is not None:
                raise trouble  # SPG601
            dist.barrier()
        """,
        "SPG601",
    )


def test_stored_in_a_field() -> None:
    """The exception may wait in a field of an object."""
    assert agree(
        """
        import torch.distributed as dist

        class Job:
            def __init__(self):
                self.error = None

            def run(self, upload):
                try:
                    upload()
                except Exception as error:
                    self.error = error
                if self.error:
                    raise self.error  # SPG601
                dist.destroy_process_group()

        def main(upload):
            Job().run(upload)
        """,
        "SPG601",
    )


def test_after_destroy_is_right() -> None:
    """Raising behind the destruction, in the same or another function, is silent."""
    assert agree(
        """
        import torch.distributed as dist
        from spmdguard import raise_if_deferred_error

        def close():
            dist.barrier()
            dist.destroy_process_group()

        def main():
            close()
            raise_if_deferred_error()

        def in_finally(train):
            try:
                train()
                dist.barrier()
                dist.destroy_process_group()
            finally:
                print("closed")
            raise_if_deferred_error()
        """,
        "SPG601",
    )


def test_agreed_first() -> None:
    """Where every rank raises once one has failed, nobody is left waiting."""
    assert agree(
        """
        import torch.distributed as dist

        def main(upload):
            trouble = None
            try:
                upload()
            except OSError as error:
                trouble = error
            reports = [None] * dist.get_world_size()
            dist.all_gather_object(reports, trouble)
            if any(reports):
                if trouble is not None:
                    raise trouble
                raise RuntimeError(str(reports))
            dist.barrier()
        """,
        "SPG601",
    )


def test_new_group_after_raise() -> None:
    """A group that is made after the raise is not waited in."""
    assert agree(
        """
        import torch.distributed as dist
        from spmdguard import raise_if_deferred_error

        def main():
            dist.destroy_process_group()
            raise_if_deferred_error()
            dist.init_process_group("gloo")
            dist.barrier()
        """,
        "SPG601",
    )


def test_exception_in_a_list() -> None:
    """The exception may wait in a list."""
    assert agree(
        """
        import torch.distributed as dist

        def main(upload):
            errors = []
            try:
                upload()
            except OSError as error:
                errors.append(error)
            if errors:
                raise errors[0]  # SPG601
            dist.barrier()
        """,
        "SPG601",
    )


def test_miss_exception_in_a_queue() -> None:
    """Known miss: an exception that comes out of a queue is not recognised."""
    assert agree(
        """
        import torch.distributed as dist

        def main(upload, errors):
            try:
                upload()
            except OSError as error:
                errors.put(error)
            trouble = errors.get()
            if trouble:
                raise trouble
            dist.barrier()
        """,
        "SPG601",
    )


def test_errors_that_a_pool_has_kept() -> None:
    """Futures of files that one rank writes are asked before the last barrier."""
    assert agree(
        """
        from concurrent.futures import ThreadPoolExecutor
        import torch
        import torch.distributed as dist

        class Writer:
            def __init__(self):
                self.pool = ThreadPoolExecutor(1)
                self.jobs = []

            def write(self, path, state):
                self.jobs.append(self.pool.submit(torch.save, state, path))

            def close(self):
                for job in self.jobs:
                    job.result()  # SPG601

        def main(step, n):
            dist.init_process_group("gloo")
            writer = Writer()
            for i in range(n):
                dist.all_reduce(step(i))
                if dist.get_rank() == 0:
                    writer.write(f"{i}.pt", {})
            if dist.get_rank() == 0:
                writer.close()
            dist.barrier()
            dist.destroy_process_group()

        def single(x):
            pool = ThreadPoolExecutor(1)
            saved = pool.submit(torch.save, x, f"{dist.get_rank()}.pt")
            dist.all_reduce(x)
            saved.result()  # SPG601
            dist.destroy_process_group()

        def after(x):
            pool = ThreadPoolExecutor(1)
            saved = pool.submit(torch.save, x, f"{dist.get_rank()}.pt")
            dist.all_reduce(x)
            dist.barrier()
            dist.destroy_process_group()
            saved.result()

        def told(x):
            pool = ThreadPoolExecutor(1)
            saved = pool.submit(torch.save, x, f"{dist.get_rank()}.pt")
            dist.all_reduce(x)
            try:
                saved.result()
            except OSError as error:
                print(error)
            dist.destroy_process_group()

        def computed(x):
            pool = ThreadPoolExecutor(1)
            total = pool.submit(sum, [1, 2])
            dist.all_reduce(x)
            print(total.result())
            dist.destroy_process_group()
        """,
        "SPG601",
    )
