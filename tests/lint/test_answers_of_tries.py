"""What functions answer that return inside of a try body, and otherwise where an exception was caught."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_returns_inside_of_a_try_body_happen_where_nothing_was_raised() -> None:
    """What a clause returns instead is another answer, which one rank alone may give."""
    assert agree(
        """
        import json
        import shutil
        import torch.distributed as dist
        from store import judge

        def put(part):
            try:
                shutil.copy(part, "/remote")
                return True
            except OSError:
                return False

        def load(path):
            try:
                with open(path) as file:
                    return json.load(file)
            except (OSError, ValueError):
                return None

        def score(text):
            try:
                return judge(text)
            except Exception:
                return None

        def strict(path):
            try:
                return open(path).read()
            except OSError:
                raise RuntimeError("gone")

        def sends(parts):
            for part in parts:
                if not put(part):
                    return  # SPG102
                dist.barrier()

        def resumes(path):
            state = load(path)
            if state is None:
                return  # SPG102
            dist.barrier()

        def judges(text):
            if score(text) is not None:
                dist.barrier()  # SPG202

        def insists(path):
            if strict(path) is None:
                return
            dist.barrier()
        """,
        "SPG102",
        "SPG202",
    )


def test_questions_about_the_installation_are_answered_alike_on_every_rank() -> None:
    """What cannot be imported, or a card that cannot do something, is so on every rank."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def has_flash():
            try:
                import flash_attn
                return True
            except Exception:
                return False

        def version():
            try:
                import flash_attn
                found = flash_attn
                return found
            except Exception:
                return None

        def device():
            try:
                return torch.accelerator.current_accelerator()
            except RuntimeError:
                return None

        def world():
            try:
                return dist.get_world_size()
            except Exception:
                return 1

        def main():
            if has_flash():
                dist.barrier()
            if version() is None:
                dist.barrier()
            if device() is None:
                dist.barrier()
            if world() > 1:
                dist.barrier()
        """,
        "SPG102",
        "SPG202",
    )


def test_a_surer_reason_counts_behind_many_unsure_ones() -> None:
    """A condition that other callers' doubtful exceptions decide is judged again for a caller that gives the rank."""
    unsure = "\n".join(f"def caller_{n}(text): meet(amount(text + '{n}'))" for n in range(6))
    assert agree(
        f"""
        import torch.distributed as dist

        def amount(text):
            try:
                return convert(text)
            except KeyError:
                return 0

        def meet(count):
            if count > 0:
                dist.barrier()  # SPG101

        {unsure}

        def sure(): meet(dist.get_rank())
        """.replace("\ndef caller", "\n        def caller"),
        "SPG101",
    )


def test_a_queue_that_was_not_filled_in_time_is_empty_for_its_own_rank() -> None:
    """To leave then is one rank's own doing; to wait again, or to take what is there, is no way out."""
    assert agree(
        """
        import queue
        import torch.distributed as dist

        def leaves(items):
            while True:
                try:
                    item = items.get(timeout=1)
                except queue.Empty:
                    break  # SPG102
                dist.all_reduce(item)

        def waits(items):
            while True:
                try:
                    item = items.get(timeout=1)
                except queue.Empty:
                    continue
                dist.all_reduce(item)

        def drains(items):
            found = []
            while True:
                try:
                    found.append(items.get_nowait())
                except queue.Empty:
                    break
            dist.barrier()
            return found
        """,
        "SPG102",
        "SPG202",
    )


def test_a_clause_for_one_message_is_for_what_no_rank_can_have() -> None:
    """What is not supported is so on every rank; memory runs out on one."""
    assert agree(
        """
        import torch.distributed as dist
        from store import fast, slow, fits

        def group():
            try:
                made = fast()
            except RuntimeError as error:
                if "not supported" not in str(error):
                    raise
                return None
            return made

        def size(batch):
            try:
                return fits(batch)
            except RuntimeError as error:
                if "out of memory" not in str(error):
                    raise
                return None

        def main(batch):
            if group() is None:
                dist.barrier()
            if size(batch) is None:
                dist.barrier()  # SPG202
        """,
        "SPG202",
    )
