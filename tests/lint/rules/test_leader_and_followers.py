"""Programs in which one rank leads and the others do what they are told."""

from __future__ import annotations

from tests.lint.rules.marked import agree

RULES = ("SPG101", "SPG102", "SPG103", "SPG104", "SPG401", "SPG402")


def test_followers_that_are_told_to_stop() -> None:
    """A command loop that ends with a last command, and a learner that tells the actors when it has learnt enough."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def send(command):
            dist.broadcast_object_list([command], src=0)

        def receive():
            box = [None]
            dist.broadcast_object_list(box, src=0)
            return box[0]

        def lead(lines, x):
            for line in lines:
                if not line:
                    continue
                send(line)
                dist.all_reduce(x)
            send(None)

        def follow(x):
            while True:
                command = receive()
                if command is None:
                    return
                dist.all_reduce(x)

        def serve(lines, x):
            if dist.get_rank() == 0:
                lead(lines, x)
            else:
                follow(x)
            dist.barrier()

        def learner(x, goal, rounds):
            for i in range(rounds):
                slots = [torch.empty_like(x) for _ in range(dist.get_world_size())]
                dist.gather(x, slots, dst=0)
                done = slots[1].item() > goal
                dist.broadcast(torch.tensor([int(done)]), src=0)
                if done:
                    break

        def actor(x, rounds):
            stop = torch.zeros(1)
            for i in range(rounds):
                dist.gather(x, dst=0)
                dist.broadcast(stop, src=0)
                if stop.item():
                    break

        def play(x, goal, rounds):
            if dist.get_rank() == 0:
                learner(x, goal, rounds)
            else:
                actor(x, rounds)
            dist.barrier()
        """,
        *RULES,
    )


def test_followers_that_wait_for_a_last_command() -> None:
    """The leader goes on without a word."""
    assert agree(
        """
        import torch.distributed as dist

        def lead(lines, x):
            for line in lines:
                dist.broadcast_object_list([line], src=0)
                dist.all_reduce(x)

        def follow(x):
            while True:
                box = [None]
                dist.broadcast_object_list(box, src=0)
                if box[0] is None:
                    return
                dist.all_reduce(x)

        def serve(lines, x):
            if dist.get_rank() == 0:
                lead(lines, x)  # SPG103
            else:
                follow(x)
            dist.barrier()
        """,
        *RULES,
    )


def test_leader_that_leaves_out_what_it_cannot_read() -> None:
    """Nobody has heard of the line: the leader goes on to the next one, or to the last command."""
    assert agree(
        """
        import json

        import torch.distributed as dist

        def send(command):
            dist.broadcast_object_list([command], src=0)

        def receive():
            box = [None]
            dist.broadcast_object_list(box, src=0)
            return box[0]

        def follow(x):
            while True:
                command = receive()
                if command is None:
                    return
                dist.all_reduce(x)

        def good(lines, x):
            if dist.get_rank() == 0:
                for line in lines:
                    try:
                        request = json.loads(line)
                    except ValueError:
                        continue
                    send(request)
                    dist.all_reduce(x)
                send(None)
            else:
                follow(x)

        def good_break(lines, x):
            if dist.get_rank() == 0:
                for line in lines:
                    try:
                        request = json.loads(line)
                    except ValueError:
                        print("bad")
                        break
                    send(request)
                    dist.all_reduce(x)
                send(None)
            else:
                follow(x)

        def read(path):
            for line in open(path):
                try:
                    yield json.loads(line)
                except json.JSONDecodeError:
                    continue

        def good_gen(path, x):
            if dist.get_rank() == 0:
                for request in read(path):
                    send(request)
                    dist.all_reduce(x)
                send(None)
            else:
                follow(x)
        """,
        *RULES,
    )


def test_leader_that_leaves_its_followers_waiting() -> None:
    """It returns without a last command, breaks off what it has announced, or its followers count for themselves."""
    assert agree(
        """
        import json

        import torch.distributed as dist

        def send(command):
            dist.broadcast_object_list([command], src=0)

        def receive():
            box = [None]
            dist.broadcast_object_list(box, src=0)
            return box[0]

        def follow(x):
            while True:
                command = receive()
                if command is None:
                    return
                dist.all_reduce(x)

        def bad_return(lines, x):
            if dist.get_rank() == 0:
                for line in lines:
                    try:
                        request = json.loads(line)
                    except ValueError:
                        return  # SPG102
                    send(request)
                    dist.all_reduce(x)
                send(None)
            else:
                follow(x)

        def bad_after_told(lines, x):
            if dist.get_rank() == 0:
                for line in lines:
                    send(line)
                    try:
                        request = json.loads(line)
                    except ValueError:
                        continue  # SPG102
                    dist.all_reduce(x)
                send(None)
            else:
                follow(x)

        def bad_plain(lines, x):
            if dist.get_rank() == 0:
                for line in lines:
                    try:
                        request = json.loads(line)
                    except ValueError:
                        continue  # SPG102
                    dist.all_reduce(x)
            else:
                for line in lines:
                    dist.all_reduce(x)
        """,
        *RULES,
    )


def test_leader_that_has_the_last_word_in_any_case() -> None:
    """Its `finally` tells the followers to stop, where they wait for the next command; peers wait for one another."""
    assert agree(
        """
        import torch.distributed as dist

        def tell(command):
            dist.broadcast_object_list([command], src=0)

        def follow(x):
            while True:
                box = [None]
                dist.broadcast_object_list(box, src=0)
                if box[0] is None:
                    return
                dist.all_reduce(x)

        def lead(requests, x):
            try:
                for request in requests:
                    tell(request.get("command"))
                    dist.all_reduce(x)
            finally:
                tell(None)

        def serve(requests, x):
            if dist.get_rank() == 0:
                lead(requests, x)
            else:
                follow(x)

        def peers(requests, x):
            try:
                for request in requests:
                    tell(request.get("command"))
                    dist.all_reduce(x)
            finally:
                tell(None)  # SPG206

        def lead_badly(requests, x):
            try:
                for request in requests:
                    command = request.get("command")
                    dist.all_reduce(x)
                    tell(command)
            finally:
                tell(None)  # SPG206

        def unlucky(requests, x):
            if dist.get_rank() == 0:
                lead_badly(requests, x)
            else:
                follow(x)
        """,
        "SPG206",
    )


def test_leader_that_leads_until_its_own_clock_or_queue_says_so() -> None:
    """The rounds are announced; where both sides look at their own clock, none is."""
    assert agree(
        """
        import queue
        import threading
        import time

        import torch
        import torch.distributed as dist

        def announce(code):
            word = torch.tensor([code])
            dist.broadcast(word, 0)
            return int(word)

        def head(x, jobs, closing):
            while not closing.is_set():
                try:
                    job = jobs.get(timeout=1.0)
                except queue.Empty:
                    announce(0)
                    continue
                announce(1)
                dist.all_reduce(x)
            announce(2)

        def follower(x):
            while True:
                code = announce(0)
                if code == 2:
                    break
                if code == 1:
                    dist.all_reduce(x)

        def serve(x):
            if dist.get_rank() == 0:
                head(x, queue.Queue(), threading.Event())
            else:
                follower(x)

        def timed(x, limit):
            deadline = time.time() + limit
            if dist.get_rank() == 0:
                while time.time() < deadline:
                    announce(1)
                    dist.all_reduce(x)
                announce(2)
            else:
                follower(x)

        def peers(x, limit):
            deadline = time.time() + limit
            if dist.get_rank() == 0:
                while time.time() < deadline:  # SPG302
                    dist.all_reduce(x)
            else:
                while time.time() < deadline:  # SPG302
                    dist.all_reduce(x)
        """,
        *RULES,
        "SPG302",
        "SPG308",
    )
