"""From evidence to a verdict: what failed first, who only followed, what to look at.

A consequence is never called the cause: events are taken by their role first (cause, killed, ended without a word,
suspect, parted, victim), and only within the best role by time, by the launcher's word, and by order in the log.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from spmdguard.triage.events import CUT_OFF, Event, Evidence
from spmdguard.triage.exits import Exit
from spmdguard.triage.tags import Moment
from spmdguard.triage.tracebacks import Frame, final_line
from spmdguard.triage.who import Processes, Who

_DEADLY = {4, 7, 8, 9, 11}  # signals that a process does not send itself after a lost partner
_KILLED = {
    7: ("bus error: most often shared memory is too small", ("shared-memory",)),
    9: ("killed from outside, most often because the host ran out of memory", ("host-memory", "outside")),
}
WATCHED = "spmdguard's watch saw it"
_LEFT = (74, 75)  # how ``spmdguard run`` ends those that lost or waited for others
_LOST = ("peer-closed", "nccl-remote-error")
_CRASHED = ("native code crashed on this rank", ("line", "versions"))
KINDS = ("failed", "killed", "silent", "suspected", "parted", "left", "nothing")


@dataclass
class Stand:
    """Where processes stood when they gave up waiting, or what was last heard of them."""

    who: tuple[Who, ...]
    text: str
    place: Frame | None = None


@dataclass
class Verdict:
    """What a failed job's logs come to; ``kind`` is one of ``KINDS``."""

    kind: str
    who: tuple[Who, ...] = ()
    error: str = ""
    means: str = ""
    place: Frame | None = None
    callers: tuple[Frame, ...] = ()
    log: tuple[str, int] | None = None
    when: Moment | None = None
    chain: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    stands: list[Stand] = field(default_factory=list)
    victims: list[Stand] = field(default_factory=list)
    also: list[Stand] = field(default_factory=list)


def judge(evidence: Evidence) -> Verdict:
    """The verdict; ``kind`` is ``"nothing"`` where the logs show no failure."""
    processes = Processes(evidence)
    by_role: dict[str, list[Event]] = defaultdict(list)
    for event in evidence.events:
        by_role[event.role].append(event)
    own = _own_verdict(evidence, by_role["cause"])
    if own is not None:
        return own
    if by_role["cause"]:
        return _with_rest(_failed(by_role["cause"], processes, "failed"), evidence, processes)
    killed = [ended for ended in evidence.exits if ended.signal in _DEADLY]
    if killed:
        return _with_rest(_killed(killed, processes), evidence, processes)
    suspects = [event for event in by_role["suspect"] if event.text != CUT_OFF] or by_role["suspect"]
    if suspects:
        return _with_rest(_failed(suspects, processes, "suspected"), evidence, processes)
    silent = _silent(evidence, processes)
    if silent is not None:
        return _with_rest(silent, evidence, processes)
    if by_role["parted"]:
        return _with_rest(_parted(by_role["parted"], evidence, processes, "parted"), evidence, processes)
    lost = [event for event in by_role["victim"] if event.pattern and event.pattern.name in _LOST]
    if lost:
        return _with_rest(_parted(lost, evidence, processes, "left"), evidence, processes)
    return Verdict("nothing", also=_heard(evidence, processes))


def _own_verdict(evidence: Evidence, causes: list[Event]) -> Verdict | None:
    """What a report of ``spmdguard run`` says, unless a cause was written before it."""
    if any(ended.signal in _DEADLY for ended in evidence.exits):
        return None  # the launcher knows better how a process died
    for report in sorted(evidence.reports, key=lambda one: (not one.stalled, one.order)):
        if any(event.order < report.order for event in causes) or (causes and not report.stalled):
            continue
        rows = [stand for stand in report.stands if not stand.parting]
        marked = [stand for stand in rows if stand.marked]
        everybody = len(marked) == len(rows)
        shown = [stand for stand in report.stands if stand.parting] or rows
        stands = [Stand(tuple(Who(r) for r in one.ranks), one.text, one.place) for one in shown]
        return Verdict(
            "parted" if report.stalled else "failed",
            tuple(Who(rank) for one in marked for rank in one.ranks)
            if not everybody or not report.stalled
            else (),
            report.text,
            WATCHED,
            next((one.place for one in marked if one.place), None),
            log=(report.line.file, report.line.number),
            when=report.line.tag.when,
            checks=("divergence",) if report.stalled or "part" in report.text else ("line", "outside"),
            stands=stands,
        )
    return None


def _failed(events: list[Event], processes: Processes, kind: str) -> Verdict:
    first = _as_raised(earliest(events, processes), events)
    if "peer" in first.kept:
        return _of_peers(first, processes)
    same = [event for event in events if event.text == first.text and event.place == first.place]
    who = _people(processes.of(event) for event in (first, *same))
    pattern = first.pattern
    later = [event for event in events if event.text != first.text and processes.of(event) not in who]
    return Verdict(
        kind,
        who,
        first.text,
        pattern.means if pattern and pattern.role == first.role else "",
        first.place,
        first.callers,
        (first.line.file, first.line.number),
        first.when,
        first.chain,
        (pattern.checks if pattern else ()) or ("line",),
        also=_stands(later, processes, with_place=True),
    )


def _as_raised(event: Event, events: list[Event]) -> Event:
    """The exception itself, where the event is another line of its message: of the same kind, by the same process."""
    if event.frames or event.pattern is None or final_line(event.text):
        return event
    alike = [other for other in events if other.pattern is event.pattern and other.stream == event.stream]
    return next((other for other in alike if other.frames or final_line(other.text)), event)


def _of_peers(event: Event, processes: Processes) -> Verdict:
    """What one rank says of others: those others are named."""
    peers = [int(number) for number in re.findall(r"\d+", event.kept["peer"])[:1000]]
    pattern = event.pattern
    assert pattern is not None
    stand = Stand((processes.of(event),), "says so", event.place)
    return Verdict(
        "failed",
        tuple(Who(rank) for rank in peers),
        event.text,
        pattern.means,
        log=(event.line.file, event.line.number),
        when=event.when,
        checks=pattern.checks,
        stands=[stand],
    )


def _killed(exits: list[Exit], processes: Processes) -> Verdict:
    first = min(exits, key=lambda ended: (not ended.root, ended.when or (9999,)))
    same = [
        ended
        for ended in exits
        if ended.signal == first.signal and (ended.when == first.when or not first.when)
    ]
    means, checks = _KILLED.get(first.signal, _CRASHED)
    who = _people(processes.of_exit(ended) for ended in (first, *same))
    return Verdict(
        "killed",
        who,
        first.text,
        means,
        log=(first.line.file, first.line.number),
        when=first.when,
        checks=checks,
    )


def _silent(evidence: Evidence, processes: Processes) -> Verdict | None:
    """A process that ended with an error code and left no word, while others speak only of consequences."""
    spoke = {processes.of(event) for event in evidence.events if event.role != "note"}
    mute = [
        ended
        for ended in evidence.exits
        if ended.signal == 0
        and ended.code not in _LEFT
        and processes.of_exit(ended).rank is not None
        and processes.of_exit(ended) not in spoke
    ]
    if not mute or not spoke or any(who.rank is None for who in spoke):
        return None
    first = min(mute, key=lambda ended: (not ended.root, ended.when or (9999,)))
    who = processes.of_exit(first)
    last = processes.last_words(who)
    return Verdict(
        "silent",
        (who,),
        f"{first.text}, without a message",
        "this rank ended itself, or its output is not among these logs",
        log=(first.line.file, first.line.number),
        when=first.when,
        checks=("line", "outside"),
        also=[Stand((who,), f"last line: {last}")] if last else [],
    )


def _parted(events: list[Event], evidence: Evidence, processes: Processes, kind: str) -> Verdict:
    """Nobody reports an error of its own: say where everybody stood, and who is behind or was not heard of."""
    first = earliest(events, processes)
    lost = [
        event
        for event in evidence.events
        if event.role == "victim" and event.pattern and event.pattern.name in _LOST
    ]
    waiting = _people(processes.of(event) for event in evidence.events if event.role != "note")
    reported = _people(processes.of(event) for event in events)
    events = events + [event for event in lost if processes.of(event) not in reported]
    behind = _behind(events, processes)
    absent = tuple(who for who in processes.everybody() if who not in waiting)
    suspects = behind or absent
    means = {
        "parted": "ranks waited for one another: not all of them made the same collectives",
        "left": "a rank left while others waited: it ended without an error, or its output is not among these logs",
    }[kind]
    pattern = first.pattern
    stands = _stands(events, processes, with_place=True)
    stands += [Stand((who,), _heard_of(who, processes)) for who in absent]
    return Verdict(
        kind,
        suspects,
        first.text,
        means,
        first.place,
        first.callers,
        (first.line.file, first.line.number),
        first.when,
        first.chain,
        (pattern.checks if pattern else ()) or ("divergence", "hang"),
        stands=stands,
    )


def _behind(events: list[Event], processes: Processes) -> tuple[Who, ...]:
    """The processes whose last collective has the lowest number, where numbers are known and differ."""
    reached: dict[Who, int] = {}
    for event in events:
        number = event.kept.get("enqueued") or event.kept.get("sequence")
        if number is not None:
            who = processes.of(event)
            reached[who] = max(reached.get(who, -1), int(number))
    if len(set(reached.values())) < 2:
        return ()
    least = min(reached.values())
    return _people(who for who, number in reached.items() if number == least)


def earliest(events: list[Event], processes: Processes) -> Event:
    """The event that came first: by time where all have one, by the launcher's word, by order in one log."""
    firsts: dict[Who, Event] = {}
    for event in events:
        firsts.setdefault(processes.of(event), event)
    candidates = list(firsts.values())
    moments = [processes.when(event) for event in candidates]
    root = processes.root()
    ordered = range(len(candidates))
    if all(moment is not None for moment in moments):
        low = min(moment for moment in moments if moment is not None)
        tied = [index for index in ordered if moments[index] == low]
        ordered = range(0) if len(tied) != 1 else range(tied[0], tied[0] + 1)
        if not len(ordered):
            candidates = [candidates[index] for index in tied]
            ordered = range(len(candidates))
    if len(ordered) == 1:
        return candidates[ordered[0]]
    by_launcher = [event for event in candidates if root is not None and processes.of(event) == root]
    return by_launcher[0] if by_launcher else min(candidates, key=lambda event: event.order)


def _with_rest(verdict: Verdict, evidence: Evidence, processes: Processes) -> Verdict:
    """Add the processes that only followed."""
    named = set(verdict.who) | {who for stand in verdict.stands + verdict.also for who in stand.who}
    per_process: dict[Who, Event] = {}
    for event in evidence.events:
        who = processes.of(event)
        if event.role in ("victim", "parted", "suspect") and who not in named and who.rank is not None:
            per_process.setdefault(who, event)
    verdict.victims = _stands(list(per_process.values()), processes)
    return verdict


def _stands(events: Iterable[Event], processes: Processes, with_place: bool = False) -> list[Stand]:
    grouped: dict[tuple[str, Frame | None], list[Who]] = defaultdict(list)
    for event in events:
        who = processes.of(event)
        text = _say(event)
        key = (text, event.place if with_place else None)
        if who not in grouped[key]:
            grouped[key].append(who)
    return [Stand(_people(who), text, place) for (text, place), who in grouped.items()]


def _say(event: Event) -> str:
    pattern = event.pattern
    if pattern is None or pattern.role in ("cause", "suspect"):
        return event.text
    text = pattern.means
    for name, value in event.kept.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _heard(evidence: Evidence, processes: Processes) -> list[Stand]:
    return [Stand((who,), _heard_of(who, processes)) for who in processes.everybody()]


def _heard_of(who: Who, processes: Processes) -> str:
    last = processes.last_words(who)
    return f"reports no failure; last line: {last}" if last else "not heard of in these logs"


def _people(who: Iterable[Who]) -> tuple[Who, ...]:
    return tuple(dict.fromkeys(who))
