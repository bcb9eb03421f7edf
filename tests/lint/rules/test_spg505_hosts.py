"""SPG505: files that the first rank of each host writes on a file system that hosts share."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_first_rank_of_each_host_on_a_shared_file_system() -> None:
    """A folder whose name says that hosts share it: of the environment, a parameter, an attribute, a constant."""
    assert agree(
        """
        import os
        from pathlib import Path

        import torch
        import torch.distributed as dist

        ROOT = Path(os.environ.get("SHARED_DIR", "/tmp/run"))

        def save(model, step):
            torch.save(model.state_dict(), ROOT / f"{step}.pt")  # SPG505

        def by_environment(model, step):
            if int(os.environ["LOCAL_RANK"]) == 0:
                save(model, step)
            dist.barrier()

        def by_parameter(model, step, nfs_root, local_rank):
            if local_rank == 0:
                torch.save(model.state_dict(), f"{nfs_root}/{step}.pt")  # SPG505
            dist.barrier()

        def by_attribute(args, local_rank):
            if local_rank == 0:
                os.replace("/tmp/last.pt", os.path.join(args.shared_folder, "last.pt"))  # SPG505
                os.remove(os.path.join(args.shared_folder, "old.pt"))
            dist.barrier()

        def by_constant(model, local_rank):
            if local_rank == 0:
                torch.save(model.state_dict(), "/lustre/me/last.pt")  # SPG505
            dist.barrier()
        """,
        "SPG505",
    )


def test_first_rank_of_each_host_elsewhere() -> None:
    """A local disk, a name for each host, one rank of the whole job, a log that is added to."""
    assert agree(
        """
        import os
        import socket

        import torch
        import torch.distributed as dist

        def local_disk(model, local_rank):
            if local_rank == 0:
                torch.save(model.state_dict(), "/scratch/me/last.pt")
            dist.barrier()

        def named_by_host(model, local_rank):
            if local_rank == 0:
                torch.save(model.state_dict(), f"/lustre/{socket.gethostname()}/last.pt")
                torch.save(model.state_dict(), f"/lustre/{os.environ['NODE_RANK']}/last.pt")
            dist.barrier()

        def one_rank(model):
            if dist.get_rank() == 0:
                torch.save(model.state_dict(), "/lustre/me/last.pt")
            dist.barrier()

        def log(local_rank):
            if local_rank == 0:
                with open("/lustre/me/log.txt", "a") as f:
                    f.write("done")
            dist.barrier()
        """,
        "SPG505",
    )
