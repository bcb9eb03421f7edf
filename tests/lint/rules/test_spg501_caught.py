"""SPG501: checkpoints that one rank takes for complete while another has caught an error and told nobody."""

from __future__ import annotations

from tests.lint.rules.marked import agree

CODE = "SPG501"


def test_markers_behind_a_barrier_that_tells_nobody() -> None:
    """The answer of a helper, a flag of the object, a clause that only logs; a marker, a pointer, a removal."""
    assert agree(
        """
        import json
        import logging
        import os
        import shutil
        from pathlib import Path

        import torch
        import torch.distributed as dist

        def write(folder, shard):
            try:
                folder.mkdir(parents=True, exist_ok=True)
                torch.save(shard, folder / f"shard_{dist.get_rank()}.pt")
                return True
            except OSError as error:
                print(error)
                return False

        def answered(root, step, shard, previous):
            folder = Path(root) / f"step{step}"
            fine = write(folder, shard)
            dist.barrier()
            if dist.get_rank() == 0:
                (folder / "COMPLETE").touch()  # SPG501
                shutil.rmtree(previous, ignore_errors=True)
            if not fine:
                raise RuntimeError("not saved")

        def of_its_own(folder, shard):
            fine = True
            try:
                torch.save(shard, f"{folder}/{dist.get_rank()}.pt")
            except Exception:
                fine = False
            dist.barrier()
            if dist.get_rank() == 0 and fine:
                Path(folder, "latest").write_text(folder)  # SPG501

        class Saver:
            def save(self, folder, state):
                try:
                    with open(f"{folder}/{dist.get_rank()}.json", "w") as file:
                        json.dump(state, file)
                except OSError:
                    self.failed = True
                    logging.exception("not written")

            def publish(self, folder, old, state):
                self.save(folder, state)
                dist.barrier()
                if dist.get_rank() == 0:
                    shutil.rmtree(old)  # SPG501
                dist.barrier()
        """,
        CODE,
    )


def test_ranks_that_have_told() -> None:
    """An agreement, what was gathered, a clause that raises, a flag that raises, a look at the files, other files."""
    assert agree(
        """
        import os
        import shutil
        from pathlib import Path

        import torch
        import torch.distributed as dist

        def write(folder, shard):
            try:
                torch.save(shard, f"{folder}/{dist.get_rank()}.pt")
            except OSError as error:
                return False
            return True

        def agreed(folder, shard):
            fine = torch.tensor([int(write(folder, shard))])
            dist.all_reduce(fine, op=dist.ReduceOp.MIN)
            if not fine.item():
                raise RuntimeError("not saved")
            if dist.get_rank() == 0:
                Path(folder, "COMPLETE").touch()

        def gathered(folder, shard):
            answers = [None] * dist.get_world_size()
            dist.all_gather_object(answers, write(folder, shard))
            dist.barrier()
            if dist.get_rank() == 0 and all(answers):
                Path(folder, "COMPLETE").touch()

        def raises(folder, shard):
            try:
                torch.save(shard, f"{folder}/{dist.get_rank()}.pt")
            except OSError as error:
                raise RuntimeError("not saved") from error
            dist.barrier()
            if dist.get_rank() == 0:
                Path(folder, "COMPLETE").touch()

        def raises_then(folder, shard):
            if not write(folder, shard):
                raise RuntimeError("not saved")
            dist.barrier()
            if dist.get_rank() == 0:
                Path(folder, "COMPLETE").touch()

        def looks(folder, shard):
            write(folder, shard)
            dist.barrier()
            if dist.get_rank() == 0:
                if len(os.listdir(folder)) == dist.get_world_size():
                    Path(folder, "COMPLETE").touch()

        def narrow(folder, shards):
            try:
                torch.save(shards["mine"], f"{folder}/{dist.get_rank()}.pt")
            except KeyError:
                print("nothing to save")
            dist.barrier()
            if dist.get_rank() == 0:
                Path(folder, "COMPLETE").touch()

        def scratch(folder, shard):
            write(folder, shard)
            dist.barrier()
            if dist.get_rank() == 0:
                shutil.rmtree(f"{folder}/tmp")

        def by_one_rank(folder, model):
            if dist.get_rank() == 0:
                try:
                    torch.save(model, f"{folder}/model.pt")
                except OSError as error:
                    print(error)
            dist.barrier()
            if dist.get_rank() == 0:
                Path(folder, "COMPLETE").touch()
        """,
        CODE,
    )
