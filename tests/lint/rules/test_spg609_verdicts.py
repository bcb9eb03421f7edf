"""SPG609: flags of success or failure that are joined the wrong way round."""

from __future__ import annotations

from tests.lint.rules.marked import agree

CODE = "SPG609"


def test_successes_of_which_one_is_enough() -> None:
    """In a helper, in a list, chosen by an `if`, from the kept error, as a tensor of its own, by a framework."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        from lightning.pytorch import Trainer
        from torch.distributed import ReduceOp

        def put(part, path):
            try:
                torch.save(part, path)
            except (OSError, RuntimeError) as error:
                print(error)
                return False
            return True

        def everywhere(mine):
            flag = torch.tensor([int(mine)])
            dist.all_reduce(flag, op=dist.ReduceOp.MAX)  # SPG609
            return bool(flag.item())

        def by_helpers(part):
            if not everywhere(put(part, f"part-{dist.get_rank()}.pt")):
                raise SystemExit("not all parts are there")

        def by_choice(part):
            fine = True
            try:
                torch.save(part, f"part-{dist.get_rank()}.pt")
            except Exception:
                fine = False
            flag = torch.tensor([1 if fine else 0], device="cuda")
            dist.all_reduce(flag, ReduceOp.MAX)  # SPG609
            if not flag.item():
                raise RuntimeError("not saved")

        def by_error(part):
            problem = None
            try:
                torch.save(part, f"part-{dist.get_rank()}.pt")
            except OSError as error:
                problem = error
            fine = torch.tensor(problem is None, dtype=torch.int32).cuda()
            dist.all_reduce(fine, op=ReduceOp.BOR)  # SPG609

        def set_last(part):
            done = False
            try:
                torch.save(part, f"part-{dist.get_rank()}.pt")
                done = True
            except OSError as error:
                print(error)
            flag = torch.tensor(float(done))
            dist.all_reduce(flag, op=ReduceOp.MAX)  # SPG609

        def as_tensors(part):
            flag = torch.ones(1)
            try:
                torch.save(part, f"part-{dist.get_rank()}.pt")
            except OSError:
                flag = torch.zeros(1)
            dist.all_reduce(flag, op=ReduceOp.MAX)  # SPG609

        def of_one_rank(part):
            fine = True
            if dist.get_rank() == 0:
                try:
                    torch.save(part, "whole.pt")
                except OSError:
                    fine = False
            flag = torch.tensor([fine])
            dist.all_reduce(flag, op=ReduceOp.MAX)  # SPG609

        def by_trainer(trainer: Trainer, part):
            fine = put(part, f"part-{dist.get_rank()}.pt")
            if not trainer.strategy.reduce_boolean_decision(fine, all=False):  # SPG609
                raise RuntimeError("not saved")
        """,
        CODE,
    )


def test_failures_that_all_ranks_must_share() -> None:
    """A flag of failure with the least, of files and of memory."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def files(part):
            failed = 0
            try:
                torch.save(part, f"part-{dist.get_rank()}.pt")
            except OSError:
                failed = 1
            flag = torch.tensor(failed)
            dist.all_reduce(flag, op=dist.ReduceOp.MIN)  # SPG609
            if flag.item():
                raise RuntimeError("not saved")

        def memory(model, batch):
            full = False
            try:
                model(batch)
            except torch.cuda.OutOfMemoryError:
                full = True
            flag = torch.tensor([int(full)])
            dist.all_reduce(flag, op=dist.ReduceOp.MIN)  # SPG609
            return flag.item()
        """,
        CODE,
    )


def test_flags_that_are_joined_rightly() -> None:
    """The least of successes, the greatest of failures, both together, a sum; what is read, what ends, one writer."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        from torch.distributed import ReduceOp

        def least(part):
            fine = True
            try:
                torch.save(part, f"part-{dist.get_rank()}.pt")
            except OSError:
                fine = False
            flag = torch.tensor([int(fine)])
            dist.all_reduce(flag, op=ReduceOp.MIN)
            return flag.item()

        def greatest(part):
            failed = False
            try:
                torch.save(part, f"part-{dist.get_rank()}.pt")
            except OSError:
                failed = True
            flag = torch.tensor([int(failed)])
            dist.all_reduce(flag, op=ReduceOp.MAX)
            return flag.item()

        def counted(part):
            fine = True
            try:
                torch.save(part, f"part-{dist.get_rank()}.pt")
            except OSError:
                fine = False
            flag = torch.tensor([int(fine)])
            dist.all_reduce(flag)
            return flag.item() == dist.get_world_size()

        def both(part):
            fine = True
            try:
                torch.save(part, f"part-{dist.get_rank()}.pt")
            except OSError:
                fine = False
            low, high = torch.tensor([int(fine)]), torch.tensor([int(fine)])
            dist.all_reduce(low, op=ReduceOp.MIN)
            dist.all_reduce(high, op=ReduceOp.MAX)
            return low.item(), high.item()

        def of_one_rank(part):
            fine = False
            if dist.get_rank() == 0:
                try:
                    torch.save(part, "whole.pt")
                    fine = True
                except OSError as error:
                    print(error)
            flag = torch.tensor([int(fine)])
            dist.all_reduce(flag, op=ReduceOp.MAX)
            return flag.item()

        def found(path):
            try:
                cached = torch.load(path)
            except OSError:
                cached = None
            flag = torch.tensor([int(cached is not None)])
            dist.all_reduce(flag, op=ReduceOp.MAX)
            return flag.item()

        def more(batches):
            ended = False
            try:
                batch = next(batches)
            except StopIteration:
                ended = True
            flag = torch.tensor([int(ended)])
            dist.all_reduce(flag, op=ReduceOp.MIN)
            return flag.item()
        """,
        CODE,
    )


def test_answers_that_are_gathered() -> None:
    """One success that is enough, and failures that all must share; all of them, and both questions, are right."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def put(part):
            try:
                torch.save(part, f"part-{dist.get_rank()}.pt")
            except OSError as error:
                return str(error)
            return None

        def one_is_enough(part):
            answers = [None] * dist.get_world_size()
            dist.all_gather_object(answers, put(part) is None)
            if not any(answers):  # SPG609
                raise RuntimeError("not saved")

        def all_must_fail(part):
            failed = False
            try:
                torch.save(part, f"part-{dist.get_rank()}.pt")
            except OSError:
                failed = True
            answers = [None] * dist.get_world_size()
            dist.all_gather_object(answers, failed)
            if all(answers):  # SPG609
                raise RuntimeError("not saved")

        def all_must_be_well(part):
            answers = [None] * dist.get_world_size()
            dist.all_gather_object(answers, put(part) is None)
            if not all(answers):
                raise RuntimeError("not saved")

        def any_failure(part):
            failed = False
            try:
                torch.save(part, f"part-{dist.get_rank()}.pt")
            except OSError:
                failed = True
            answers = [None] * dist.get_world_size()
            dist.all_gather_object(answers, failed)
            if any(answers):
                raise RuntimeError("not saved")

        def both(part):
            answers = [None] * dist.get_world_size()
            dist.all_gather_object(answers, put(part) is None)
            if not any(answers):
                raise RuntimeError("nothing is saved")
            if not all(answers):
                raise RuntimeError("not all is saved")
        """,
        CODE,
    )


def test_known_limits() -> None:
    """A flag that is changed in place."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def in_place(part):
            flag = torch.ones(1)
            try:
                torch.save(part, f"part-{dist.get_rank()}.pt")
            except OSError:
                flag.zero_()
            dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        """,
        CODE,
    )


def test_an_answer_that_is_given_inside_of_the_try_body() -> None:
    """The function answers with True where nothing was raised, and with False where something was."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def put(part):
            try:
                torch.save(part, f"part-{dist.get_rank()}.pt")
                return True
            except OSError:
                return False

        def hidden(part):
            flag = torch.tensor([int(put(part))])
            dist.all_reduce(flag, op=dist.ReduceOp.MAX)  # SPG609

        def told(part):
            flag = torch.tensor([int(put(part))])
            dist.all_reduce(flag, op=dist.ReduceOp.MIN)
        """,
        CODE,
    )
