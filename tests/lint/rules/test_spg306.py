"""SPG306: collectives that depend on the host or the process."""

from __future__ import annotations

from tests.lint.rules.marked import agree

HOSTS = ("SPG101", "SPG102", "SPG306")


def test_hosts_and_processes_decide() -> None:
    """The host's name, the process id, the number of CPUs."""
    assert agree(
        """
        import os
        import platform
        import socket
        import torch.distributed as dist

        def by_name(x):
            if socket.gethostname() == "node-0":
                dist.all_reduce(x)  # SPG306

        def by_node(x):
            if platform.node().startswith("gpu"):
                dist.all_reduce(x)  # SPG306

        def by_variable(x):
            if os.environ["HOSTNAME"] == "head":
                return  # SPG306
            dist.barrier()
        """,
        *HOSTS,
    )


def test_shared_settings_are_silent() -> None:
    """Variables that a launcher sets for all, and a choice that one rank shares."""
    assert agree(
        """
        import os
        import socket
        import torch.distributed as dist

        def setting(x):
            if os.environ.get("USE_SYNC", "1") == "1":
                dist.all_reduce(x)

        def shared(x):
            choice = [socket.gethostname() == "node-0"]
            dist.broadcast_object_list(choice, src=0)
            if choice[0]:
                dist.all_reduce(x)
        """,
        *HOSTS,
    )
