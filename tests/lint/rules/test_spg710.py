"""SPG710: a rendezvous through a file that a job which died leaves behind."""

from __future__ import annotations

from tests.lint.rules.marked import agree

CODE = "SPG710"


def test_files_with_the_same_name_in_each_job() -> None:
    """A constant, a constant name in a folder that is handed in, a store, a path as a URI, all ways to put a text."""
    assert agree(
        """
        import os
        from pathlib import Path
        import torch.distributed as dist

        PLACE = "file:///mnt/shared/init"

        def constant(rank, world):
            dist.init_process_group("gloo", init_method=PLACE, rank=rank, world_size=world)  # SPG710

        def positional(rank, world, folder):
            dist.init_process_group("gloo", f"file://{folder}/init", rank=rank, world_size=world)  # SPG710

        def joined(rank, world, args):
            place = os.path.join(os.path.abspath(args.output_dir), "init")
            dist.init_process_group("gloo", init_method="file://" + place, rank=rank, world_size=world)  # SPG710

        def formatted(rank, world, folder):
            dist.init_process_group("gloo", init_method="file://{}/x".format(folder), rank=rank)  # SPG710
            dist.destroy_process_group()

        def percent(rank, world, folder):
            dist.init_process_group("gloo", init_method="file://%s/x" % folder, rank=rank, world_size=world)  # SPG710

        def uri(rank, world):
            place = (Path(__file__).parent / "init").resolve()
            dist.init_process_group("gloo", init_method=place.as_uri(), rank=rank, world_size=world)  # SPG710

        def stored(rank, world):
            store = dist.FileStore("/mnt/shared/store", world)
            dist.init_process_group("gloo", store=store, rank=rank, world_size=world)  # SPG710

        class Job:
            def __init__(self, shared: Path):
                self.shared = shared

            def __enter__(self):
                place = self.shared / "rendezvous"
                dist.init_process_group(
                    "nccl",
                    init_method=f"file://{place.resolve()}",  # SPG710
                    rank=0,
                    world_size=2,
                )
                return self

            def __exit__(self, kind, value, trace):
                dist.destroy_process_group()
        """,
        CODE,
    )


def test_files_of_one_start_alone() -> None:
    """Names with a job, a random number or a parameter in them, and folders made for one start."""
    assert agree(
        """
        import os
        import tempfile
        import uuid
        from pathlib import Path
        import torch.distributed as dist

        def by_job(rank, world, args):
            place = args.out / ("init_%s" % os.environ["SLURM_JOB_ID"])
            dist.init_process_group("gloo", init_method=f"file://{place}", rank=rank, world_size=world)

        def by_folder_of_job(rank, world):
            folder = f"/scratch/{os.environ['LSB_JOBID']}"
            dist.init_process_group("gloo", init_method=f"file://{folder}/init", rank=rank, world_size=world)

        def temporary(rank, world):
            with tempfile.TemporaryDirectory() as folder:
                dist.init_process_group("gloo", init_method=f"file://{folder}/init", rank=rank, world_size=world)

        def temporary_fixture(tmp_path):
            dist.init_process_group("gloo", init_method=f"file://{tmp_path}/init", rank=0, world_size=1)

        def drawn(rank, world):
            dist.init_process_group("gloo", init_method=f"file:///x/{uuid.uuid4()}", rank=rank, world_size=world)

        def handed_in(rank, world, file):
            dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=world)

        def from_settings(rank, world, cfg):
            dist.init_process_group("gloo", init_method=cfg.dist_url, rank=rank, world_size=world)

        def over_tcp(rank, world):
            dist.init_process_group("gloo", init_method="tcp://10.1.1.20:23456", rank=rank, world_size=world)
        """,
        CODE,
    )


def test_files_that_are_removed_beforehand() -> None:
    """By rank 0, by the process that starts the others, with their folder; a removal afterwards is none."""
    assert agree(
        """
        import os
        import shutil
        from pathlib import Path
        import torch.distributed as dist
        import torch.multiprocessing as mp

        def main(rank, world, folder):
            place = os.path.join(folder, "init")
            if rank == 0 and os.path.exists(place):
                os.remove(place)
            dist.init_process_group("gloo", init_method="file://" + place, rank=rank, world_size=world)

        def worker(rank, world):
            dist.init_process_group("gloo", init_method="file:///shared/meet", rank=rank, world_size=world)

        def start():
            Path("/shared/meet").unlink(missing_ok=True)
            mp.spawn(worker, args=(2,), nprocs=2)

        def other(rank, world, root):
            shutil.rmtree(root / "sync", ignore_errors=True)
            dist.init_process_group("gloo", init_method=f"file://{root}/sync/init", rank=rank, world_size=world)

        def afterwards(rank, world):
            dist.init_process_group("gloo", init_method="file:///shared/late", rank=rank, world_size=world)  # SPG710
            dist.destroy_process_group()
            os.remove("/shared/late")
        """,
        CODE,
    )
