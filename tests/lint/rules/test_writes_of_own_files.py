"""Clauses that leave past collectives, around the writing of a file that has this rank in its name (SPG102)."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_a_rank_leaves_when_its_own_file_cannot_be_written() -> None:
    """A full disk or a refused upload comes to one rank alone; what all write or read under one name may fail alike."""
    assert agree(
        """
        import shutil
        import torch
        import torch.distributed as dist


        def save(store, step, part):
            rank = dist.get_rank()
            try:
                torch.save(part, f"/tmp/part{rank}.pt")
            except OSError as err:
                print(err)
                return False  # SPG102
            dist.barrier()
            return True


        def save_each(parts, step):
            for part in parts:
                try:
                    with open(f"/tmp/part{dist.get_rank()}.pt", "wb") as file:
                        file.write(part)
                except Exception as err:
                    print(err)
                    continue  # SPG102
                dist.barrier()


        def copy(path):
            try:
                shutil.copy(path, f"/bucket/{dist.get_rank()}")
            except:
                return  # SPG102
            dist.barrier()


        def shared(part):
            try:
                torch.save(part, "x.pt")
            except OSError as err:
                return False
            dist.barrier()
            return True


        def load():
            try:
                x = torch.load(f"/tmp/part{dist.get_rank()}.pt")
            except FileNotFoundError:
                return None
            dist.barrier()
            return x


        def agreed(part):
            ok = torch.ones(1)
            try:
                torch.save(part, f"/tmp/part{dist.get_rank()}.pt")
            except OSError as err:
                ok.zero_()
            dist.all_reduce(ok, op=dist.ReduceOp.MIN)
            if ok.item() == 0:
                return False
            dist.barrier()


        def raises(part):
            try:
                torch.save(part, f"/tmp/part{dist.get_rank()}.pt")
            except OSError as err:
                raise RuntimeError("no") from err
            dist.barrier()


        def at_end(parts):
            for part in parts:
                dist.all_reduce(part)
                try:
                    torch.save(part, f"/tmp/part{dist.get_rank()}.pt")
                except OSError as err:
                    continue
                print(part)
        """,
        "SPG102",
        "SPG202",
        "SPG206",
    )
