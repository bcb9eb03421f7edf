"""SPG609 on the files of ranks that have only logged their failure, and that one rank puts together."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_parts_that_are_put_together_although_ranks_have_failed() -> None:
    """The parts are read by name, loaded, or found by listing the folder; the clause is bare or names Exception."""
    assert agree(
        """
        import glob
        import json
        import logging
        import traceback
        from pathlib import Path
        import torch
        import torch.distributed as dist

        log = logging.getLogger(__name__)

        def write_rows(rows, out: Path):
            with open(out / f"part_{dist.get_rank()}.jsonl", "w") as file:
                for row in rows:
                    file.write(json.dumps(row.score()))

        def by_name(rows, out: Path):
            try:
                write_rows(rows, out)
            except Exception:  # SPG609
                log.exception("rank %d failed", dist.get_rank())
            dist.barrier()
            if dist.get_rank() == 0:
                found = []
                for rank in range(dist.get_world_size()):
                    found += (out / f"part_{rank}.jsonl").read_text().splitlines()
                (out / "all.json").write_text(json.dumps(found))

        def loaded(model, rows, out):
            rank = dist.get_rank()
            try:
                torch.save([model(row) for row in rows], f"{out}/scores_{rank}.pt")
            except:  # SPG609
                traceback.print_exc()
            dist.barrier()
            if rank == 0:
                torch.save([torch.load(f"{out}/scores_{i}.pt") for i in range(dist.get_world_size())], out)

        class Writer:
            def __init__(self, out: Path):
                self.out, self.rank = out, dist.get_rank()

            def run(self, rows):
                try:
                    write_rows(rows, self.out)
                except Exception as error:  # SPG609
                    print("failed:", error)
                dist.barrier()
                if self.rank == 0:
                    for path in self.out.iterdir():
                        print(path.read_text())
        """,
        "SPG609",
    )


def test_parts_of_ranks_that_tell_of_their_failure() -> None:
    """A flag, a raise, an agreed verdict, a check of what was read; parts that nobody reads, or each rank its own."""
    assert agree(
        """
        import json
        import logging
        from pathlib import Path
        import torch
        import torch.distributed as dist

        log = logging.getLogger(__name__)

        def write_rows(rows, out: Path):
            with open(out / f"part_{dist.get_rank()}.jsonl", "w") as file:
                for row in rows:
                    file.write(json.dumps(row.score()))

        def read_all(out: Path):
            found = []
            for rank in range(dist.get_world_size()):
                found += (out / f"part_{rank}.jsonl").read_text().splitlines()
            return found

        def flagged(rows, out: Path):
            failed = torch.zeros(1)
            try:
                write_rows(rows, out)
            except Exception:
                log.exception("failed")
                failed.fill_(1)
            dist.all_reduce(failed)
            if failed.item():
                raise RuntimeError("a rank has failed")
            if dist.get_rank() == 0:
                print(read_all(out))

        def raised(rows, out: Path):
            try:
                write_rows(rows, out)
            except Exception:
                log.exception("failed")
                raise
            dist.barrier()
            if dist.get_rank() == 0:
                print(read_all(out))

        def counted(rows, out: Path, total):
            try:
                write_rows(rows, out)
            except Exception:
                log.exception("failed")
            dist.barrier()
            if dist.get_rank() == 0:
                found = read_all(out)
                if len(found) != total:
                    raise RuntimeError("rows are missing")

        def for_debugging(rows, out: Path):
            try:
                write_rows(rows, out)
            except Exception:
                log.exception("no trace")
            dist.barrier()
            if dist.get_rank() == 0:
                print((out / "settings.json").read_text())

        def its_own(rows, out: Path):
            try:
                write_rows(rows, out)
            except Exception:
                log.exception("failed")
            dist.barrier()
            print((out / f"part_{dist.get_rank()}.jsonl").read_text())
        """,
        "SPG609",
    )
