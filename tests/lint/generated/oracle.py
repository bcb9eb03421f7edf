"""The oracle: run a generated script once per rank and say whether the ranks' collectives match.

Every rank is run to its end on its own, with the results of collectives guessed from its own contribution.
Then the recorded events of all ranks are matched as a real group would match them (a collective completes
when each member of its group has it next); where a guess was wrong, the rank runs again with the true
result. Scripts are deterministic, so a run with true results for its first n events repeats those n events.
No threads, no waiting: a rank that would wait for ever shows as a matching that gets stuck.

Verdicts: ``mismatch`` (somebody waits for ever); ``grey`` (all collectives match, but ranks end differently,
one raising or destroying its group and another not, or they disagree on a root or reduction); ``match``; and
``invalid`` (the script broke a rule of Python or of the library, or ran out of budget: it is no program of
the fragment).
"""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any, Literal

from tests.lint.generated.stubs import builtins_for
from tests.lint.generated.world import OutOfBudget, ProgramError, Rank, combine

Verdict = Literal["match", "grey", "mismatch", "invalid"]

WORLD_SIZES = (2, 3, 4)
MAX_SECONDS = 3  # of processor time for one rank, which takes milliseconds
LARGE_WORLD = 9  # where a program compares with a number that no smaller world reaches
LARGE = re.compile(r"(?:==|<|>|//) [5-8]\b")
SEVERITY: tuple[Verdict, ...] = ("match", "grey", "mismatch", "invalid")
RAISED_BY_PROGRAMS = frozenset({"ValueError", "RuntimeError", "OSError", "StepError", "StopRun"})
MAX_ROUNDS = 400
FILENAME = "generated.py"
TraceFunction = Callable[[FrameType, str, Any], Any]
FINAL = "destroy_process_group"


@dataclass(frozen=True)
class Setting:
    """One way to start the job: world size and the inputs that all ranks share."""

    world: int
    mode: str = "fast"
    argv: tuple[str, ...] = ("train.py",)


@dataclass(frozen=True)
class Outcome:
    """What the ranks of one start did: each rank's collectives and how it ended."""

    verdict: Verdict
    setting: Setting
    traces: tuple[tuple[str, ...], ...]
    endings: tuple[str, ...]

    def text(self) -> str:
        start = self.setting
        lines = [f"{self.verdict}: world size {start.world}, MODE={start.mode}, argv={start.argv}"]
        for rank, (trace, ending) in enumerate(zip(self.traces, self.endings, strict=True)):
            lines.append(f"  rank {rank}: {', '.join(trace) or '(none)'}; {ending}")
        return "\n".join(lines)


def settings(source: str) -> Iterator[Setting]:
    """Each world size with every setting of the inputs that the script reads."""
    modes = ("fast", "full") if "MODE" in source else ("fast",)
    argvs = (("train.py",), ("train.py", "--eval", "now")) if "argv" in source else (("train.py",),)
    for world in (*WORLD_SIZES, LARGE_WORLD) if LARGE.search(source) else WORLD_SIZES:
        for mode in modes:
            for argv in argvs:
                yield Setting(world, mode, argv)


def judge(source: str) -> Outcome:
    """The worst outcome over all settings; stops at the first mismatch."""
    code = compile(source, FILENAME, "exec")
    worst: Outcome | None = None
    for setting in settings(source):
        outcome = run_setting(code, setting)
        if worst is None or SEVERITY.index(outcome.verdict) > SEVERITY.index(worst.verdict):
            worst = outcome
        if outcome.verdict in ("mismatch", "invalid"):
            break
    assert worst is not None
    return worst


def reached(source: str) -> frozenset[int]:
    """The lines that some rank executes in some setting; slow, for a closer look only."""
    code = compile(source, FILENAME, "exec")
    lines: set[int] = set()

    def trace(frame: FrameType, event: str, _arg: object) -> TraceFunction | None:
        if frame.f_code.co_filename != FILENAME:
            return None
        lines.add(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for setting in settings(source):
            run_setting(code, setting)
    finally:
        sys.settrace(before)
    return frozenset(lines)


def run_setting(code: CodeType, setting: Setting) -> Outcome:
    """Run all ranks of one start, again and again until no guess was wrong."""
    ranks = [Rank(place, setting.world, setting.mode, setting.argv) for place in range(setting.world)]
    stale: Sequence[Rank] = ranks
    for _round in range(MAX_ROUNDS):
        for rank in stale:
            run_rank(code, rank)
        heads, stale = match_events(ranks)
        if not stale:
            return outcome_of(ranks, heads, setting)
    return Outcome("invalid", setting, ((),) * setting.world, ("out of budget",) * setting.world)


@contextmanager
def _within_seconds(seconds: int) -> Iterator[None]:
    """End a script that goes round without a collective: it is no program of the fragment."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise OutOfBudget

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def run_rank(code: CodeType, rank: Rank) -> None:
    """Run one rank from start to end and note how it ended."""
    names = {"__name__": "__main__", "__builtins__": builtins_for(rank)}
    try:
        with _within_seconds(MAX_SECONDS):
            exec(code, names)  # a script this package wrote itself
        rank.ending = "ends"
    except SystemExit:
        rank.ending = "exits"
    except OutOfBudget:
        rank.ending = "invalid: out of budget"
    except ProgramError as error:
        rank.ending = f"invalid: {error}"
    except Exception as error:
        name = type(error).__name__
        known = name in RAISED_BY_PROGRAMS and not str(error).startswith("implicit")
        rank.ending = f"raises {name}" if known else f"invalid: {name}: {error}"


def match_events(ranks: Sequence[Rank]) -> tuple[list[int], list[Rank]]:
    """Match the recorded events; return how many of each rank's completed, and the ranks to run again."""
    heads = [0] * len(ranks)
    stale: dict[int, Rank] = {}
    moved = True
    while moved:
        moved = False
        for rank in ranks:
            while _complete(ranks, heads, rank, stale):
                moved = True
                if stale:
                    return heads, list(stale.values())
    return heads, []


def _complete(ranks: Sequence[Rank], heads: list[int], rank: Rank, stale: dict[int, Rank]) -> bool:
    """Complete the next collective of ``rank`` if every member of its group is there."""
    place = heads[rank.rank]
    if place >= len(rank.events):
        return False
    event = rank.events[place]
    if event.op == FINAL:
        heads[rank.rank] += 1
        return True
    members = event.group[1:]
    partners = []
    for member in members:
        other = ranks[member]
        if heads[member] >= len(other.events):
            return False
        partner = other.events[heads[member]]
        if partner.op != event.op or partner.group != event.group:
            return False
        partners.append(partner)
    results = combine(event.op, [partner.contribution for partner in partners], members, event.detail)
    if any(partner.detail != event.detail for partner in partners):
        rank.disagrees = True
    for member, partner, result in zip(members, partners, results, strict=True):
        if partner.result != result:
            other = ranks[member]
            other.restart([made.result for made in other.events[: heads[member]]] + [result])
            stale[member] = other
        heads[member] += 1
    return True


def outcome_of(ranks: Sequence[Rank], heads: Sequence[int], setting: Setting) -> Outcome:
    """The outcome of runs in which every guess up to ``heads`` was right; what lies beyond never happens."""
    traces, endings = [], []
    for rank, head in zip(ranks, heads, strict=True):
        waits = head < len(rank.events)
        traces.append(tuple(event.op for event in rank.events[: head + 1]))
        endings.append(f"waits in {rank.events[head].op}" if waits else rank.ending)
    verdict = _verdict(traces, endings)
    if verdict == "match" and any(rank.disagrees for rank in ranks):
        verdict = "grey"
    return Outcome(verdict, setting, tuple(traces), tuple(endings))


def _verdict(traces: Sequence[tuple[str, ...]], endings: Sequence[str]) -> Verdict:
    if any(ending.startswith("invalid") for ending in endings):
        return "invalid"
    if any(ending.startswith("waits") for ending in endings):
        return "mismatch"
    destroyed = {trace.count(FINAL) for trace in traces}
    raised = {ending.startswith("raises") for ending in endings}
    return "match" if len(destroyed) == 1 and len(raised) == 1 else "grey"


if __name__ == "__main__":
    print(judge(sys.stdin.read()).text())
