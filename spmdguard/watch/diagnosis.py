"""Why a run stands still: from where every rank stands, which ranks are the cause, and what the others wait for.

Causes in the order in which they are believed: a rank that raised, was aborted in a collective, died, is stopped,
was never heard of, holds the GIL, or ended; then ranks that began different collectives; then a rank that is
elsewhere; then nothing but the connection between them. A rank whose exception came out of communication is a
*victim*: it counts as waiting where it was.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from spmdguard.format import name_ranks
from spmdguard.watch.looking import pending_of
from spmdguard.watch.partings import Parting, find_mismatch, find_parting
from spmdguard.watch.standing import Place, Standing

Kind = Literal[
    "raised",
    "aborted",
    "died",
    "stopped",
    "missing",
    "silent",
    "ended",
    "parted",
    "elsewhere",
    "together",
    "alone",
]


@dataclass(frozen=True)
class Cluster:
    """Ranks that stand at the same place in the same state."""

    ranks: tuple[int, ...]
    standing: Standing
    longest_s: float
    behind: int | None


@dataclass(frozen=True)
class Diagnosis:
    """What is known of a stall.

    Attributes:
        kind: what kind of cause.
        suspects: the ranks that are the cause.
        title: one line that says it.
        parting: where ranks stopped calling the same collectives, where that is known.
        clusters: all ranks by where they stand: suspects first, then the largest.
        waiting: the ranks that wait in communication.
        longest_s: the longest wait.
        world_size: the number of ranks.
    """

    kind: Kind
    suspects: tuple[int, ...]
    title: str
    parting: Parting | None
    clusters: tuple[Cluster, ...]
    waiting: tuple[int, ...]
    longest_s: float
    world_size: int

    def places(self) -> list[Place]:
        """Every place that matters, the suspects' first, each once."""
        return list(dict.fromkeys(place for stack in self.stacks() for place in stack))

    def stacks(self) -> list[tuple[Place, ...]]:
        """Where ranks stand, and where they parted: the suspects' stacks first, each innermost first."""
        arms = self.parting.arms if self.parting is not None else ()
        found = [cluster.standing.places for cluster in self.clusters] + [arm.places for arm in arms]
        return [stack for stack in dict.fromkeys(found) if stack]


def diagnose(found: Sequence[Standing], world_size: int) -> Diagnosis:
    """Find the cause; ranks below ``world_size`` that are not among ``found`` are missing."""
    standings = {each.rank: each for each in found}
    for rank in range(world_size):
        standings.setdefault(rank, Standing(rank=rank, state="missing"))
    waiting = {rank: each for rank, each in standings.items() if waits(each)}
    parting = find_parting({rank: each for rank, each in standings.items() if each.state != "missing"})
    aborted = find_mismatch(standings, waiting)
    kind, suspects = _judge(standings, waiting, parting)
    if kind == "died" and aborted is not None:
        kind, suspects, parting = "aborted", aborted.arms[0].ranks, aborted
    target = _target(waiting)
    clusters = _cluster(standings, set(suspects), target)
    return Diagnosis(
        kind=kind,
        suspects=suspects,
        title=_title(kind, suspects, standings, waiting, parting),
        parting=parting,
        clusters=clusters,
        waiting=tuple(sorted(waiting)),
        longest_s=max((each.since_s for each in waiting.values()), default=0.0),
        world_size=world_size,
    )


def waits(standing: Standing) -> bool:
    """Whether the rank is, or was when it gave up, waiting for others."""
    return standing.state == "waiting" or (standing.state == "raised" and standing.victim)


def stands_still(found: Sequence[Standing], world_size: int, limit_s: float) -> bool:
    """Whether there is anything to report: a rank that waits too long, or waits for one that is gone."""
    waiting = [each for each in found if waits(each)]
    if any(each.since_s >= limit_s for each in waiting) or any(each.state == "raised" for each in found):
        return True
    gone = any(each.state in ("died", "ended") for each in found) or len({e.rank for e in found}) < world_size
    return bool(waiting) and gone


def _judge(
    standings: Mapping[int, Standing], waiting: Mapping[int, Standing], parting: Parting | None
) -> tuple[Kind, tuple[int, ...]]:
    raised = [each for each in standings.values() if each.state == "raised" and not each.victim]
    if raised:  # the one that raised first; what came later may be its consequence
        return "raised", (max(raised, key=lambda each: (each.since_s, -each.rank)).rank,)
    for kind in ("died", "stopped", "missing", "silent"):
        ranks = tuple(sorted(rank for rank, each in standings.items() if each.state == kind))
        if ranks:
            return kind, ranks
    ended = tuple(sorted(rank for rank, each in standings.items() if each.state == "ended"))
    if parting is not None and all(arm.operation for arm in parting.arms):
        return "parted", parting.minority
    if ended and len(ended) < len(standings):
        return "ended", ended
    elsewhere = tuple(sorted(rank for rank, each in standings.items() if each.state == "running"))
    if elsewhere and waiting:
        return "elsewhere", elsewhere
    if parting is not None:
        return "parted", parting.minority
    if len({each.operation for each in waiting.values()}) > 1:
        return "parted", tuple(sorted(waiting))
    return ("together", tuple(sorted(waiting))) if waiting else ("alone", ())


def _target(waiting: Mapping[int, Standing]) -> tuple[str, int] | None:
    """The group and number of the collective that most waiting ranks are in."""
    counts: dict[tuple[str, int], int] = {}
    for each in waiting.values():
        pending = pending_of(each.calls)
        if pending is not None and not pending.point_to_point:
            counts[pending.group, pending.number] = counts.get((pending.group, pending.number), 0) + 1
        elif each.groups and each.groups[0].number is not None:
            key = (each.groups[0].name, each.groups[0].number)
            counts[key] = counts.get(key, 0) + 1
    return max(counts, key=lambda key: (counts[key], key), default=None)


def _cluster(
    standings: Mapping[int, Standing], suspects: set[int], target: tuple[str, int] | None
) -> tuple[Cluster, ...]:
    ranks: dict[Standing, list[int]] = {}
    longest_s: dict[Standing, float] = {}
    for rank, each in standings.items():
        behind = _behind(each, target)
        key = replace(
            each,
            rank=int(rank in suspects),
            host="",
            pid=0,
            local_rank=0,
            groups=(),
            calls=(),
            since_s=0.0,
            seen_s=0.0,
            busy=each.busy and each.state == "running",
            step=behind if behind is not None else -1,
        )
        ranks.setdefault(key, []).append(rank)
        longest_s[key] = max(each.since_s, longest_s.get(key, 0.0))
    clusters = []
    for key, members in ranks.items():
        first = standings[min(members)]
        behind = key.step if key.step != -1 else None
        clusters.append(Cluster(tuple(sorted(members)), first, longest_s[key], behind))
    return tuple(sorted(clusters, key=lambda c: (not suspects & set(c.ranks), -len(c.ranks), c.ranks)))


def _behind(standing: Standing, target: tuple[str, int] | None) -> int | None:
    """How many collectives a rank lacks to where most wait."""
    if target is None:
        return None
    number = standing.number_in(target[0])
    return None if number is None else target[1] - number


def _title(
    kind: Kind,
    suspects: tuple[int, ...],
    standings: Mapping[int, Standing],
    waiting: Mapping[int, Standing],
    parting: Parting | None,
) -> str:
    who = name_ranks(suspects) if suspects else "no rank"
    first = standings[suspects[0]] if suspects else Standing(rank=0)
    verb = "is" if len(suspects) == 1 else "are"
    what = describe_wait(waiting)
    if kind == "raised":
        return f"{who} failed first: {first.failure or 'an exception'}"
    if kind == "parted" and parting is not None:
        return f"{_parted_title(parting, who)}"
    if kind == "aborted" and parting is not None:
        operations = " and ".join(
            dict.fromkeys(arm.operation for arm in parting.arms if arm.ranks != suspects)
        )
        were = "was" if len(suspects) == 1 else "were"
        return (
            f"ranks parted: {who} {were} aborted in {first.operation}, by a collective mismatch, "
            f"while {name_ranks(waiting)} waited in {operations}"
        )
    process = f"process {first.pid} on {first.host}" if len(suspects) == 1 and first.pid else ""
    return {
        "died": f"{who} died without a word{f' ({process})' if process else ''}: {describe_end(first)}",
        "stopped": f"{who} {verb} stopped by a signal{f' ({process})' if process else ''}",
        "missing": f"nothing was heard of {who}{f' ({process})' if process else ''}; {what}",
        "silent": f"{who} {verb} silent: alive, but something holds the GIL{f' ({process})' if process else ''}",
        "ended": f"{who} ended while {what}",
        "parted": f"{who} wait in different calls",
        "elsewhere": f"{who} did not come: {what}",
        "together": f"{what}; no rank is missing",
        "alone": "no rank waits for another",
    }[kind]


def _parted_title(parting: Parting, who: str) -> str:
    began = [arm for arm in parting.arms if arm.operation]
    operations = list(dict.fromkeys(arm.operation for arm in began))
    where = f"number {parting.number} of {parting.group}"
    if len(began) < len(parting.arms) and operations:
        return f"{who} did not come to {operations[0]}, {where}"
    texts = [f"{name_ranks(arm.ranks)} began {arm.operation}" for arm in parting.arms[:2]]
    return f"{' where '.join(texts)}, {where}"


def describe_end(standing: Standing) -> str:
    """How the process of a rank that died ended, as far as it is known."""
    if not standing.failure:
        return "killed, or os._exit"
    if standing.failure.startswith("exit code"):
        return f"it ended with {standing.failure}, past Python's own exit (os._exit)"
    number = signal.Signals.__members__.get(standing.failure)
    named = standing.failure if number is None else f"signal {int(number)} ({standing.failure})"
    where = f" in {standing.operation}" if standing.operation and standing.failure != "SIGKILL" else ""
    return f"ended by {named}{where}"


def describe_wait(waiting: Mapping[int, Standing]) -> str:
    """``"ranks 1-3 wait in barrier"``."""
    if not waiting:
        return "no rank waits"
    operations = sorted({each.operation or "communication" for each in waiting.values()})
    shown = " and ".join(operations[:3])
    return f"{name_ranks(waiting)} wait{'s' if len(waiting) == 1 else ''} in {shown}"
