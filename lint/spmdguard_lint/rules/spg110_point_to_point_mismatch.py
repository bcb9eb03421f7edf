"""
# point-to-point-mismatch (SPG110)

## What it does
Finds sends and receives that cannot meet: ranks that all receive before they send, a rank that names itself or a
rank that does not exist as its partner, receives for which nobody sends a message, messages that nobody receives,
messages of another size or dtype than the receiver's tensor, and functions in which all ranks exchange messages and
that only some of them call (a pass of a pipeline on its last stage alone).

## Why is this bad
`recv` waits until its message has come. Where each rank of a pair or of a ring receives first, each waits for a
message that the other would send next: the job hangs in the first round, on every backend. A tag or a partner that
does not fit hangs in the same way.

## Example
```python
import torch
import torch.distributed as dist


def exchange(x):
    peer = dist.get_rank() ^ 1
    received = torch.empty_like(x)
    dist.recv(received, src=peer)
    dist.send(x, dst=peer)
    return received
```

## Use instead
```python
import torch
import torch.distributed as dist


def exchange(x):
    peer = dist.get_rank() ^ 1
    received = torch.empty_like(x)
    ops = [dist.P2POp(dist.isend, x, peer), dist.P2POp(dist.irecv, received, peer)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return received
```

or let the even ranks send first and the odd ones receive first.

## Known limits
The moves of each rank are played for worlds of 2 and 4 ranks. Judged where the partners are computed from rank and
world size, on the default group, and under conditions on rank and world size alone; loops whose number of rounds is
not known run once. Numbers that the program checks against the world size (`assert senders + receivers == world_size`)
are tried out. The messages of a batch (`batch_isend_irecv`) are those made on the way to it. Receives without a
message are looked for in whole programs, not in functions that others call. A `recv` that names no sender is played
with two orders in which messages may come, from the first rank and from the last one. Collectives count as far as
every rank waits in them; one that is begun (`async_op=True`) is waited for where its handle is. A function that all
ranks are meant to run is known by a receive and its send that stand in it both, where all messages that are seen stand
in it; what is the same everywhere in the condition of the call (`collector is not None`) is read as true.

## Fix safety
No fix.

## References
- https://docs.pytorch.org/docs/stable/distributed.html#point-to-point-communication
- The MPI Bugs Initiative (MBI): error class "call matching"
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ..model import Certainty, Finding
from ..traces.nodes import Branch, Call, Op
from ..values.evaluate import Valuation, truth
from .registry import rule
from .support_dtypes import differing_dtypes
from .support_messages import MESSAGES, Move, Outcome, Play, by_rank, names_nobody, scripts_of, valid
from .support_numbers import Numbers, numbers_for, worlds_of
from .support_schedules import run_by_some
from .support_shapes import differing_sizes
from .support_trees import finding_at

if TYPE_CHECKING:
    from ..analysis import Analysis, Root
    from ..values.value import Place, Value

RULE = rule(code="SPG110", name="point-to-point-mismatch", severity="error", status="stable", page=__doc__)
ORDER = "let half of the ranks send first, or use `batch_isend_irecv`"
PARTNER = "name another rank of the job, and call it only where there is one"
PAIR = "give each receive a send of the same tag, and each send its receive"
TOGETHER = "let every rank make the call, and let those that need it use what it gives"
ALIKE = "receive into a tensor of the size and dtype that is sent"
_WORLDS = ((2, 2), (4, 2))
_MORE_WORLDS = (*_WORLDS, (3, 3))


def check(analysis: Analysis) -> Iterable[Finding]:
    """Each root's messages, played in small worlds; what callers play to its end is no finding of the callee alone."""
    entries = {id(root) for root in analysis.entry_roots()}
    found: list[tuple[Move, Finding]] = []
    fine: set[Place] = set()
    for root in analysis.roots:
        if not root.contents.ops.isdisjoint(MESSAGES) and not root.exceeded and not root.truncated:
            mine = _judge(analysis, root, entry=id(root) in entries)
            if isinstance(mine, set):
                fine |= mine
            elif mine is not None:
                found.append(mine)
    yield from (finding for move, finding in found if move.calls or move.node.place not in fine)
    yield from _schedules(analysis)


def _schedules(analysis: Analysis) -> Iterable[Finding]:
    """Calls that exchange messages among all ranks, made by some of them."""
    for root in analysis.roots:
        for alone in run_by_some(root):
            message = (
                f"only some ranks call `{alone.call.text}`: rank {alone.rank} waits in `{alone.receive.text}` "
                f"for rank {alone.other}, which is not in it"
            )
            calls = [node for node, _ in alone.path if isinstance(node, Call)]
            yield finding_at(RULE, alone.call, message, TOGETHER, calls=calls, reached=alone.receive)


def _is_program(root: Root) -> bool:
    """Whether a root is a whole run, so that no other code sends what is received in it."""
    return root.function is None or "init_process_group" in root.contents.ops


def _judge(analysis: Analysis, root: Root, *, entry: bool) -> tuple[Move, Finding] | set[Place] | None:
    """What is wrong in a root; the places of calls that followed functions play to their end; None where unclear."""
    whole = entry and _is_program(root)
    finding = _wrong_partner(analysis, root, entry=entry)
    if finding is not None:
        return finding
    ended: set[Place] = set()
    for (world, local), (numbers, said) in _started(root):
        scripts = scripts_of(root.tree, world, local, numbers)
        if scripts is None:
            return None
        if not valid(scripts):
            continue
        for last_first in (False, True):
            outcome = Play(scripts.moves, eager=True, last_first=last_first).run()
            finding = _in_circle(outcome, rough=scripts.rough) or _unlike(outcome, world, local)
            if finding is None and not scripts.rough:
                finding = _without_message(outcome, whole=whole) or (_left_over(outcome) if whole else None)
            if finding is not None:
                return _with_numbers(finding, said)
        ended.update(m.node.place for moves in scripts.moves for m in moves if m.calls)
    return ended


def _started(root: Root) -> Iterator[tuple[tuple[int, int], tuple[Numbers, str]]]:
    """The worlds, with the numbers with which the program may be started in them."""
    for world, local in worlds_of(root.tree, _WORLDS):
        for numbers in numbers_for(root.tree, world, local):
            yield (world, local), numbers


def _with_numbers(found: tuple[Move, Finding], said: str) -> tuple[Move, Finding]:
    move, finding = found
    if not said:
        return found
    return move, replace(finding, message=f"{finding.message}, with {said}", certainty="likely")


def _wrong_partner(analysis: Analysis, root: Root, *, entry: bool) -> tuple[Move, Finding] | None:
    """A partner that is computed from the rank and is, in every world, for some rank itself or nobody.

    One that is the same for all is judged where nobody calls the root, and so keeps that rank from it.
    """
    wrong: list[dict[Place, tuple[Move, int, int]]] = []
    for world, local in worlds_of(root.tree, _MORE_WORLDS):
        scripts = scripts_of(root.tree, world, local)
        if scripts is None:
            return None
        wrong.append(
            {
                move.node.place: (move, rank, world)
                for rank, moves in enumerate(scripts.moves)
                for move in moves
                if (by_rank(move) or (entry and move.peer == rank)) and names_nobody(move, rank, world)
            }
        )
    for place, (move, rank, world) in wrong[0].items() if wrong else ():
        if all(place in others for others in wrong) and not _kept_away(analysis, move, rank, world):
            what = "itself" if move.peer == rank else f"rank {move.peer}, which does not exist"
            message = f"with {world} ranks, `{move.text}` on rank {rank} names {what}"
            return move, _finding(move, message, PARTNER)
    return None


def _kept_away(analysis: Analysis, move: Move, rank: int, world: int) -> bool:
    """Whether a function is called, and by nobody who surely comes to it on this rank."""
    if move.calls:
        return False
    at = Valuation(rank, world)
    reached = [
        all(
            truth(node.condition, at) is (part == "then")
            for node, part in step.path
            if isinstance(node, Branch)
        )
        for root in analysis.roots
        if not root.contents.ops.isdisjoint(MESSAGES)
        for step in root.steps
        if step.calls and step.node.place == move.node.place
    ]
    return bool(reached) and not any(reached)


def _in_circle(outcome: Outcome, *, rough: bool) -> tuple[Move, Finding] | None:
    """Ranks that wait for one another, at least one of them for a message."""
    circle = outcome.circle()
    receiving = [rank for rank in circle if rank not in outcome.meeting]
    if not receiving or (rough and len(receiving) < len(circle)):
        return None
    rank = receiving[0]
    following = circle[(circle.index(rank) + 1) % len(circle)]
    move, other = outcome.stuck[rank], outcome.stuck[following]
    if any(message.sender == following and message.taken is None for _, message in outcome.sent):
        move, other = (outcome.receives.get(one, outcome.stuck[one]) for one in (rank, following))
    if other.node.place == move.node.place and following in outcome.meeting:
        message = (
            f"rank {rank} waits in `{move.text}` for a message of rank {following}, "
            "which waits there for the others to join a collective"
        )
    elif other.node.place == move.node.place:
        message = f"ranks {_listed(circle)} all wait in `{move.text}`, and none comes to its send"
    else:
        message = (
            f"rank {rank} waits in `{move.text}` for rank {following}, "
            f"which waits in `{other.text}` and comes to no send before"
        )
    return move, _finding(move, message, ORDER, reached=other)


def _without_message(outcome: Outcome, *, whole: bool) -> tuple[Move, Finding] | None:
    """A receive for which the rank that it names, which has come to its end, sends nothing."""
    for rank, move in outcome.stuck.items():
        others = outcome.waits_for[rank]
        if rank in outcome.meeting or not others or others & outcome.stuck.keys() or -1 in others:
            continue
        sent = [m for r, m in outcome.sent if r == rank and m.sender in others and m.taken is None]
        if not sent and not whole:
            continue
        message = f"rank {rank} waits in `{move.text}` for rank {min(others)}, which sends nothing more"
        if sent:
            tag = sent[0].move.tag
            message = f"rank {rank} waits in `{move.text}`, and what rank {min(others)} sends has tag {tag}"
        return move, _finding(move, message, PAIR, certainty="likely")
    return None


def _left_over(outcome: Outcome) -> tuple[Move, Finding] | None:
    """A message that nobody receives, although every rank comes to its end."""
    if outcome.stuck:
        return None
    for receiver, sent in outcome.sent:
        if sent.taken is None:
            message = f"rank {receiver} never receives what rank {sent.sender} sends in `{sent.move.text}`"
            return sent.move, _finding(sent.move, message, PAIR, certainty="likely")
    return None


def _unlike(outcome: Outcome, world: int, local: int) -> tuple[Move, Finding] | None:
    """A message that does not fit into the tensor of its receiver."""
    for receiver, sent in outcome.sent:
        if sent.taken is None:
            continue
        first, second = _tensor(sent.move), _tensor(sent.taken)
        if first is None or second is None:
            continue
        here, there = Valuation(sent.sender, world, local), Valuation(receiver, world, local)
        for word, differ in (("size", differing_sizes), ("dtype", differing_dtypes)):
            if differ(first, here, second, there):
                message = f"`{sent.taken.text}` expects another {word} than `{sent.move.text}` sends"
                return sent.taken, _finding(sent.taken, message, ALIKE, reached=sent.move)
    return None


def _tensor(move: Move) -> Value | None:
    node = move.node
    return node.tensors[0] if isinstance(node, Op) and node.tensors else None


def _listed(ranks: list[int]) -> str:
    return ", ".join(str(rank) for rank in sorted(ranks))


def _finding(
    move: Move,
    message: str,
    help_text: str,
    *,
    certainty: Certainty = "definite",
    reached: Move | None = None,
) -> Finding:
    node = None if reached is None else reached.node
    return finding_at(
        RULE, move.node, message, help_text, certainty=certainty, calls=move.calls, reached=node
    )
