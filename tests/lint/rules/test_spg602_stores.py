"""SPG602: a store whose host ends before the others have used it for the last time."""

from __future__ import annotations

from tests.lint.rules.marked import agree

CODE = "SPG602"


def test_hosts_that_do_not_wait() -> None:
    """Its own keys alone are read, nothing is, or a last word is said and not heard; in a function that is spawned."""
    assert agree(
        """
        import os

        import torch.distributed as dist
        import torch.multiprocessing as mp
        from torch.distributed import TCPStore

        def shares(work):
            rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            store = dist.TCPStore("host", 29500, world, is_master=rank == 0)
            if rank == 0:
                for other in range(world):
                    store.set(f"share/{other}", str(other))
            mine = store.get(f"share/{rank}")
            store.set(f"result/{rank}", work(mine))
            if rank == 0:
                return
            store.wait([f"result/{rank}"])  # SPG602

        def worker(rank, world):
            if rank == 0:
                store = TCPStore("host", 29500, world, True)
                store.set("table", "1 2 3")
            else:
                store = TCPStore("host", 29500, world, False)
                print(store.get("table"))  # SPG602

        def last_word(work):
            rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            store = TCPStore("host", 29500, world, rank == 0)
            if rank == 0:
                for other in range(1, world):
                    print(store.get(f"result/{other}"))
                store.set("best", "7")
            else:
                store.set(f"result/{rank}", work())
                print(store.get("best"))  # SPG602

        def put(store, key):
            store.set(key, "1")  # SPG602

        def by_helpers(work):
            rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            store = dist.TCPStore("host", 29500, world, is_master=rank == 0)
            put(store, f"left/{rank}")

        mp.spawn(worker, args=(4,), nprocs=4)
        """,
        CODE,
    )


def test_hosts_that_wait() -> None:
    """For a key of each of the others, for all of them, in a loop that asks; no host of this job; one that is kept."""
    assert agree(
        """
        import os
        import time

        import torch.distributed as dist

        def each(work):
            rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            store = dist.TCPStore("host", 29500, world, is_master=rank == 0)
            store.set(f"result/{rank}", work())
            if rank == 0:
                for other in range(1, world):
                    print(store.get(f"result/{other}"))

        def all_at_once(work):
            rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            store = dist.TCPStore("host", 29500, world, is_master=rank == 0)
            if rank == 0:
                store.set("share", "1")
                store.wait([f"left/{other}" for other in range(1, world)])
                return
            print(store.get("share"))
            store.set(f"left/{rank}", "1")

        def put(store, key):
            store.set(key, "1")

        def by_helpers(work):
            rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            store = dist.TCPStore("host", 29500, world, is_master=rank == 0)
            put(store, f"left/{rank}")
            if rank == 0:
                store.wait([f"left/{other}" for other in range(1, world)])

        def asking(work):
            rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            store = dist.TCPStore("host", 29500, world, is_master=rank == 0)
            store.add("done", 1)
            if rank == 0:
                while store.add("done", 0) < world:
                    time.sleep(1)

        def elsewhere(work):
            store = dist.TCPStore("host", 29500, None, False)
            store.set("result", work())

        def everywhere(work):
            store = dist.TCPStore("localhost", 0, 1, True)
            store.set("result", work())

        def made(rank, world):
            store = dist.TCPStore("host", 29500, world, rank == 0)
            store.set(f"name/{rank}", "x")
            return store

        def handed_on(rank, world, server):
            store = dist.TCPStore("host", 29500, world, rank == 0)
            store.set(f"name/{rank}", "x")
            server.run(store)

        def with_a_group(work):
            rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            store = dist.TCPStore("host", 29500, world, rank == 0)
            dist.init_process_group("gloo", store=store, rank=rank, world_size=world)
            store.set(f"name/{rank}", "x")
            dist.barrier()
            dist.destroy_process_group()
        """,
        CODE,
    )
