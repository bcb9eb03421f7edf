"""SPG110: sends and receives that cannot meet."""

from __future__ import annotations

from tests.lint.rules.marked import agree

CODES = ("SPG109", "SPG110")


def test_all_receive_first() -> None:
    """Pairs and rings, in place, in helpers, behind an object's fields, and with a handle that is waited for."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def pairs(x, out):
            peer = dist.get_rank() ^ 1
            dist.recv(out, src=peer)  # SPG110
            dist.send(x, dst=peer)

        def ring(x, out):
            rank, world = dist.get_rank(), dist.get_world_size()
            dist.recv(out, (rank - 1) % world)  # SPG110
            dist.send(x, (rank + 1) % world)

        def swap(x, partner):
            out = torch.empty_like(x)
            dist.recv(out, src=partner)  # SPG110
            dist.send(x, dst=partner)
            return out

        def caller(x):
            partner = dist.get_rank() ^ 1
            if partner < dist.get_world_size():
                return swap(x, partner)

        class Swap:
            def __init__(self):
                self.peer = dist.get_rank() ^ 1

            def take(self, out):
                dist.recv(out, src=self.peer)  # SPG110

            def __call__(self, x):
                out = torch.empty_like(x)
                self.take(out)
                dist.send(x, dst=self.peer)
                return out

        def with_handle(x, out):
            peer = dist.get_rank() ^ 1
            work = dist.irecv(out, src=peer)
            work.wait()  # SPG110
            dist.send(x, dst=peer)

        def in_rounds(x, out, steps):
            peer = dist.get_rank() ^ 1
            for _ in range(steps):
                dist.recv(out, src=peer)  # SPG110
                dist.send(x, dst=peer)
        """,
        *CODES,
    )


def test_some_wait_for_one_another() -> None:
    """Two ranks that receive first, and a rank that sends only after a barrier."""
    assert agree(
        """
        import torch.distributed as dist

        def two(x, out):
            if dist.get_rank() == 0:
                dist.recv(out, src=1)  # SPG110
                dist.send(x, dst=1)
            elif dist.get_rank() == 1:
                dist.recv(out, src=0)
                dist.send(x, dst=0)

        def barrier(x, out):
            if dist.get_rank() == 0:
                dist.recv(out, src=1)  # SPG110
                dist.barrier()
            else:
                dist.barrier()
                if dist.get_rank() == 1:
                    dist.send(x, dst=0)
        """,
        *CODES,
    )


def test_partners_that_do_not_exist() -> None:
    """A rank names itself, or a rank behind the last one or before the first one."""
    assert agree(
        """
        import torch.distributed as dist

        def itself(x):
            dist.send(x, dst=dist.get_rank())  # SPG110

        def after_the_last(x):
            dist.send(x, dst=dist.get_rank() + 1)  # SPG110

        def before_the_first(x):
            rank, world = dist.get_rank(), dist.get_world_size()
            if rank < world - 1:
                dist.send(x, dst=rank + 1)
            dist.recv(x, src=rank - 1)  # SPG110

        def constant(x):
            if dist.get_rank() == 0:
                dist.send(x, dst=1)
            elif dist.get_rank() == 1:
                dist.recv(x, src=1)  # SPG110
        """,
        *CODES,
    )


def test_messages_that_do_not_fit() -> None:
    """Another tag, another size, another dtype."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def tags(x):
            if dist.get_rank() == 0:
                dist.send(x, dst=1, tag=3)
            elif dist.get_rank() == 1:
                dist.recv(x, src=0, tag=4)  # SPG110

        def sizes():
            if dist.get_rank() == 0:
                dist.send(torch.ones(4), dst=1)
            elif dist.get_rank() == 1:
                dist.recv(torch.empty(2), src=0)  # SPG110

        def dtypes():
            if dist.get_rank() == 0:
                dist.send(torch.ones(4, dtype=torch.float64), dst=1)
            elif dist.get_rank() == 1:
                dist.recv(torch.empty(4), src=0)  # SPG110
        """,
        *CODES,
    )


def test_messages_of_whole_programs() -> None:
    """A receive that nobody sends to, a message that nobody receives, and a race for what is received by name."""
    for body in ("recv(x, src=1)", "send(x, dst=1)"):
        assert agree(
            f"""
            import torch
            import torch.distributed as dist

            def main():
                dist.init_process_group("gloo")
                x = torch.ones(2)
                if dist.get_rank() == 0:
                    dist.{body}  # SPG110
                dist.destroy_process_group()

            main()
            """,
            *CODES,
        )
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def main():
            dist.init_process_group("gloo")
            box = torch.zeros(4)
            if dist.get_rank() == 0:
                dist.recv(box)
                dist.recv(box, src=2)  # SPG110
            elif dist.get_rank() in (1, 2):
                dist.send(box, dst=0)
            dist.destroy_process_group()

        main()
        """,
        *CODES,
    )


def test_messages_that_meet() -> None:
    """Even and odd ranks in turn, a token in a ring, a chain, handles before sends, and sources in any order."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def in_turn(x, out):
            rank = dist.get_rank()
            peer = rank ^ 1
            if rank < peer:
                dist.send(x, dst=peer)
                dist.recv(out, src=peer)
            else:
                dist.recv(out, src=peer)
                dist.send(x, dst=peer)

        def token(x):
            rank, world = dist.get_rank(), dist.get_world_size()
            if rank > 0:
                dist.recv(x, src=rank - 1)
            if rank < world - 1:
                dist.send(x, dst=rank + 1)

        def ring(x):
            rank, world = dist.get_rank(), dist.get_world_size()
            before, after = (rank - 1) % world, (rank + 1) % world
            if rank == 0:
                dist.send(x, dst=after)
                dist.recv(x, src=before)
            else:
                dist.recv(x, src=before)
                dist.send(x, dst=after)

        def handle_first(x, out):
            peer = dist.get_rank() ^ 1
            work = dist.irecv(out, src=peer)
            dist.send(x, dst=peer)
            work.wait()

        def any_order(x):
            if dist.get_rank() == 0:
                for _ in range(dist.get_world_size() - 1):
                    dist.recv(x)
            else:
                dist.send(x, dst=0)

        def tags(x):
            if dist.get_rank() == 0:
                dist.send(x, dst=1, tag=1)
                dist.send(x, dst=1, tag=2)
            elif dist.get_rank() == 1:
                dist.recv(x, src=0, tag=2)
                dist.recv(x, src=0, tag=1)
        """,
        "SPG110",
    )


def test_unknown_roles_are_silent() -> None:
    """Partners and roles that callers name, halves of an exchange, and loops with other numbers of rounds."""
    assert agree(
        """
        import torch.distributed as dist

        def by_role(x, out, first, peer):
            if first:
                dist.recv(out, src=peer)
                dist.send(x, dst=peer)
            else:
                dist.send(x, dst=peer)
                dist.recv(out, src=peer)

        class Stage:
            def __init__(self, is_first):
                self.is_first = is_first
                self.before = (dist.get_rank() - 1) % dist.get_world_size()
                self.after = (dist.get_rank() + 1) % dist.get_world_size()

            def forward(self, x):
                if not self.is_first:
                    dist.recv(x, src=self.before)
                dist.send(x, dst=self.after)

        def receiving_half(x):
            if dist.get_rank() == 1:
                dist.recv(x, src=0)

        def sending_half(x):
            if dist.get_rank() == 0:
                dist.send(x, dst=1)

        def served(x, jobs):
            dist.init_process_group("gloo")
            if dist.get_rank() == 0:
                for _ in range(3):
                    dist.recv(x, src=1)
            elif dist.get_rank() == 1:
                while jobs:
                    dist.send(x, dst=0)
                    jobs = jobs[1:]
            dist.barrier()

        def callee(x, out, first):
            if first:
                dist.send(x, dst=dist.get_rank() ^ 1)
            dist.recv(out, src=dist.get_rank() ^ 1)
            if not first:
                dist.send(x, dst=dist.get_rank() ^ 1)

        def caller(x, out):
            callee(x, out, dist.get_rank() % 2 == 0)
        """,
        "SPG110",
    )


def test_known_miss_own_groups() -> None:
    """Messages on a group of some ranks are not played."""
    assert agree(
        """
        import torch.distributed as dist

        def pairs(x, out, group):
            peer = dist.get_rank() ^ 1
            dist.recv(out, src=peer, group=group)
            dist.send(x, dst=peer, group=group)
        """,
        "SPG110",
    )


def test_batches() -> None:
    """Messages that are begun together: a receive without its send, and a ring that expects from the wrong side."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def pass_on(x, rank, world, last):
            inbox = torch.zeros_like(x)
            ops = []
            if rank > 0:
                ops.append(dist.P2POp(dist.irecv, inbox, rank - 1))
            if rank < last:
                ops.append(dist.P2POp(dist.isend, x, rank + 1))
            if ops:
                for request in dist.batch_isend_irecv(ops):
                    request.wait()  # SPG110
            return inbox

        def short():
            dist.init_process_group("gloo")
            rank, world = dist.get_rank(), dist.get_world_size()
            pass_on(torch.zeros(2), rank, world, world - 2)

        def turn(x):
            rank, world = dist.get_rank(), dist.get_world_size()
            inbox = torch.zeros_like(x)
            following = (rank + 1) % world
            ops = [dist.P2POp(dist.isend, x, following), dist.P2POp(dist.irecv, inbox, following)]  # SPG110
            requests = dist.batch_isend_irecv(ops)
            [request.wait() for request in requests]
            return inbox
        """,
        "SPG110",
    )


def test_batches_that_meet() -> None:
    """A ring, a line that tests its list, pairs, and lists that another function has made."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def turn(x, rank, world):
            inbox = torch.zeros_like(x)
            ops = [
                dist.P2POp(dist.isend, x, (rank + 1) % world),
                dist.P2POp(op=dist.irecv, tensor=inbox, peer=(rank - 1) % world),
            ]
            for request in dist.batch_isend_irecv(ops):
                request.wait()

        def pass_on(x, rank, world):
            inbox = torch.zeros_like(x)
            ops = []
            if rank > 0:
                ops.append(dist.P2POp(dist.irecv, inbox, rank - 1))
            if rank < world - 1:
                ops.append(dist.P2POp(dist.isend, x, rank + 1))
            if len(ops) > 0:
                requests = dist.batch_isend_irecv(ops)
                for request in requests:
                    request.wait()

        def swap(x, rank):
            inbox = torch.zeros_like(x)
            peer = rank ^ 1
            first = dist.P2POp(dist.isend if rank % 2 else dist.irecv, x if rank % 2 else inbox, peer)
            for request in dist.batch_isend_irecv([first]):
                request.wait()

        def given(ops):
            for request in dist.batch_isend_irecv(ops):
                request.wait()

        def main():
            dist.init_process_group("gloo")
            x, rank, world = torch.zeros(4), dist.get_rank(), dist.get_world_size()
            for _ in range(3):
                turn(x, rank, world)
            pass_on(x, rank, world)
            swap(x, rank)
            dist.destroy_process_group()
        """,
        "SPG110",
    )


def test_barrier_of_an_exit() -> None:
    """A barrier that ``__exit__`` calls where nothing was raised stands between a receive and its send."""
    program = """
        import torch
        import torch.distributed as dist

        class Section:
            def __enter__(self):
                return self

            def __exit__(self, kind, value, trace):
                if TEST:
                    dist.barrier()
                return False

        def share(rank, plan):
            with Section():
                if rank == 1:
                    dist.recv(plan, src=0)CODE
                FIRST
            LAST

        def main():
            dist.init_process_group("gloo")
            share(dist.get_rank(), torch.empty(4))
            dist.destroy_process_group()

        main()
        """
    send = "if rank == 0:\n{0}dist.send(plan, dst=1)"
    late = (
        program.replace("FIRST", "pass").replace("LAST", send.format(" " * 16)).replace("CODE", "  # SPG110")
    )
    early = program.replace("FIRST", send.format(" " * 20)).replace("LAST", "pass").replace("CODE", "")
    for test in ("kind is None", "not kind", "value is None"):
        assert agree(late.replace("TEST", test), "SPG110")
        assert agree(early.replace("TEST", test), "SPG110")
    assert agree(late.replace("TEST", "kind is not None").replace("  # SPG110", ""), "SPG110")


def test_partner_that_callers_keep_out() -> None:
    """A method that sends to rank 0 is no finding where rank 0 does not call it, and is one where it does."""
    program = """
        import torch
        import torch.distributed as dist

        class Replay:
            def push(self):
                dist.send(torch.zeros(4), dst=0)

            def pull(self):
                dist.recv(torch.zeros(4), src=1)

        def main(rounds):
            dist.init_process_group("gloo")
            replay = Replay()
            for _ in range(rounds):
                if dist.get_rank() == 0:
                    replay.pull()
                else:
                    replay.push()
            dist.destroy_process_group()

        main(20)
        """
    assert agree(program, "SPG110")
    everybody = program.replace("else:\n                    replay", "if True:\n                    replay")
    assert agree(everybody.replace("dst=0)", "dst=0)  # SPG110"), "SPG110")
