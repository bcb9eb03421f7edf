"""Chains of objects, of which a rank may have one more: what is called for each is followed."""

from __future__ import annotations

import pytest

from tests.lint.rules.marked import agree

CODES = ("SPG101", "SPG102", "SPG103", "SPG104", "SPG105", "SPG401", "SPG402")
HOOKS = """
    import torch.distributed as dist

    class Hook:
        def __init__(self, work, following=None):
            self.work = work
            self.following = following

    class Chain:
        def __init__(self):
            self.head = None
            self.tail = None

        def then(self, work):
            hook = Hook(work)
            if self.head is None:
                self.head = hook
            else:
                self.tail.following = hook
            self.tail = hook
            return self

        def __call__(self, state):
            WALK

    def mean(key):
        def apply(state):
            dist.all_reduce(state[key])CODE
        return apply

    def show(state):
        print(state)

    def main(states):
        MAKE
        for state in states:
            chain(state)
"""
WALKS = (
    "hook = self.head\n            while hook is not None:\n                hook.work(state)\n"
    "                hook = hook.following",
    "hook = self.head\n            while hook:\n                at, hook = hook, hook.following\n"
    "                at.work(state)",
    "at = self.head\n            while not (at is None):\n                work = at.work\n"
    "                at = at.following\n                work(state)",
)


def hooks(walk: str, make: str, code: str = "") -> str:
    """A program that makes a chain of hooks and walks along it."""
    return HOOKS.replace("WALK", walk).replace("MAKE", make).replace("CODE", code)


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize(
    "make",
    [
        "chain = Chain().then(mean('a'))\n        if dist.get_rank() == 0:\n            chain.then(mean('b'))",
        "chain = Chain().then(show).then(mean('a'))\n        if dist.get_rank() == 0:\n"
        "            chain.then(show).then(mean('b'))",
        "chain = Chain()\n        if dist.get_rank() == 0:\n            chain.then(mean('a'))",
    ],
)
def test_one_rank_has_a_hook_more(walk: str, make: str) -> None:
    """A hook that communicates is put into the chain of one rank."""
    assert agree(hooks(walk, make, "  # SPG104"), *CODES)


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize(
    "make",
    [
        "chain = Chain().then(mean('a')).then(mean('b'))",
        "chain = Chain().then(mean('a')).then(mean('b'))\n        if dist.get_rank() == 0:\n"
        "            chain.then(show)",
        "chain = Chain().then(mean('a'))\n        if dist.get_rank() == 0:\n            chain.then(show)\n"
        "        chain.then(mean('b'))",
    ],
)
def test_hooks_of_all_and_quiet_ones(walk: str, make: str) -> None:
    """All ranks have the hooks that communicate; one that only prints makes no difference."""
    assert agree(hooks(walk, make), *CODES)


def test_chain_of_unknown_length() -> None:
    """A chain that a loop has made is read as any other loop."""
    assert agree(
        hooks(WALKS[0], "chain = Chain()\n        for state in states:\n            chain.then(mean(state))"),
        *CODES,
    )


def test_objects_of_several_callers() -> None:
    """A function that makes an object for each of its callers gives each one its own."""
    assert agree(
        """
        import torch.distributed as dist

        class Task:
            def __init__(self, work):
                self.work = work

            def run(self, x):
                self.work(x)

        def make(work):
            return Task(work)

        def main(x):
            shared, own = make(dist.all_reduce), make(print)
            shared.run(x)
            if dist.get_rank() == 0:
                own.run(x)

        def wrong(x):
            own, shared = make(print), make(dist.all_reduce)
            own.run(x)
            if dist.get_rank() == 0:
                shared.run(x)  # SPG104
        """,
        *CODES,
    )


def test_which_object_a_rank_comes_to() -> None:
    """What each object has for itself differs where ranks come to another one by its steps, or choose one."""
    assert agree(
        """
        from dataclasses import dataclass
        import torch.distributed as dist

        @dataclass
        class Node:
            owner: int
            kind: str = "plain"
            next: "Node | None" = None

        def ring(size):
            head = last = Node(0)
            for owner in range(1, size):
                last.next = Node(owner)
                last = last.next
            last.next = head
            return head

        def seat(head, steps):
            cursor = head
            for _ in range(steps):
                cursor = cursor.next
            return cursor

        def around(x):
            head = ring(dist.get_world_size())
            mine = seat(head, dist.get_rank())
            dist.broadcast(x, src=mine.owner)  # SPG107
            dist.broadcast(x, src=head.owner)

        def written_down(x):
            head = Node(0, next=Node(1))
            cursor = head
            for _ in range(dist.get_rank()):
                cursor = cursor.next
            dist.broadcast(x, src=cursor.owner)  # SPG107

        def alike(head, x):
            cursor = head
            for _ in range(3):
                cursor = cursor.next
            dist.broadcast(x, src=cursor.owner)

        def listed(x):
            nodes = [Node(owner) for owner in range(dist.get_world_size())]
            mine = nodes[dist.get_rank()]
            dist.broadcast(x, src=mine.owner)  # SPG107
            dist.broadcast(x, src=nodes[0].owner)
            if mine.kind == "plain":
                dist.barrier()
        """,
        "SPG101",
        "SPG107",
    )
