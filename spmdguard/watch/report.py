"""The stall report as text: what happened, where ranks part, where every rank stands, what the linter says.

At most ``MAX_LINES`` lines, for any number of ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spmdguard.format import escape_text, name_ranks, name_ranks_by_host
from spmdguard.watch.diagnosis import Cluster, Diagnosis, describe_end
from spmdguard.watch.hints import Hint
from spmdguard.watch.partings import Arm
from spmdguard.watch.standing import Place, Standing

MAX_LINES = 40
_MAX_CLUSTERS = 8
_MAX_ARMS = 4
_MAX_WIDTH = 300
LEFT_KINDS = ("raised", "aborted", "died", "ended")
_STALE = ("died", "stopped", "missing", "silent")  # the cause is no line of the program
_ADVICE = {
    "raised": "mend the error of {who}; what other ranks say is its consequence",
    "aborted": "every rank must call the same collectives in the same order, with tensors of the same size; look at "
    "what decides between these (gloo, on the stderr of {who}: `EnforceNotMet ... collective mismatch`)",
    "died": "look for the out-of-memory killer (dmesg), a signal from the scheduler, or a call of os._exit",
    "stopped": "send it SIGCONT, or find who stopped it (a debugger, a terminal, the scheduler)",
    "missing": "look whether its host is reachable and its process was started",
    "silent": "the line named last was in native code that does not release the GIL (or the host gives it no CPU)",
    "ended": "every rank must come to the same collectives; look at how {who} could leave before them",
    "parted": "every rank must call the same collectives in the same order; look at what decides between these",
    "elsewhere": "every rank must come to the collective; let {who} come, or let the others wait less for it",
    "together": "look at sizes and types of the tensors, and at the network between the hosts",
    "alone": "",
}


@dataclass(frozen=True)
class Report:
    """One stall, with everything that its forms (text, JSON, HTML, trace) show.

    Attributes:
        diagnosis: the cause.
        standings: every rank that was heard of.
        hints: what the linter says; None where it could not be asked.
        limit_s: how long a wait may take.
        reason: why the report was made.
        when: the time, as text.
        now_s: the time, in seconds since the epoch.
        waited_s: the longest wait, at the time of the report.
    """

    diagnosis: Diagnosis
    standings: tuple[Standing, ...]
    hints: tuple[Hint, ...] | None
    limit_s: float
    reason: str
    when: str
    now_s: float = 0.0
    waited_s: float = 0.0


def render_text(report: Report) -> str:
    """The report for a terminal."""
    diagnosis = report.diagnosis
    label = "FAILED" if diagnosis.kind in LEFT_KINDS else "STALL"
    head = [f"spmdguard: {label}: {diagnosis.title}", f"  saw:   {report.reason} ({report.when})"]
    who = name_ranks(diagnosis.suspects) if diagnosis.suspects else "the ranks"
    tail = [f"  do:    {advice}"] if (advice := _advise(diagnosis).format(who=who)) else []
    tail = [*_hint_lines(report), *tail]
    parting = _parting_lines(diagnosis)
    room = MAX_LINES - len(head) - len(tail) - len(parting)
    lines = [*head, *parting, *_cluster_lines(report, max(4, room)), *tail]
    return "\n".join(line if len(line) <= _MAX_WIDTH else f"{line[: _MAX_WIDTH - 1]}…" for line in lines)


def _advise(diagnosis: Diagnosis) -> str:
    """What to do; of a fatal signal its own message tells more than any guess."""
    ends = {c.standing.failure for c in diagnosis.clusters if set(c.ranks) & set(diagnosis.suspects)}
    if diagnosis.kind != "died" or not ends or ends & {"", "SIGKILL", "SIGTERM"}:
        return _ADVICE[diagnosis.kind]
    if any(end.startswith("exit code") for end in ends):
        return "look for a call of os._exit, in the program or in a library, on {who}"
    return (
        "look at what {who} wrote last to stderr: `terminate called`, an assertion, a native stack; gloo aborts where "
        "ranks hand tensors of different sizes to one collective"
    )


def format_places(places: Sequence[Place], limit: int = 4) -> str:
    """``"src/train.py:21 in accuracy < train.py:38 in main"``, innermost first; a folder stands once."""
    texts, before = [], ""
    for place in places[:limit]:
        name = place.file
        if name == before:
            name = name.replace("\\", "/").rpartition("/")[2]
        texts.append(escape_text(f"{name}:{place.line} in {place.function}"))
        before = place.file
    return " < ".join(texts) or "an unknown place"


def seen_at(standing: Standing) -> str:
    """``"at"``, or of a rank that has ended ``"last seen at"``."""
    return "last seen at" if standing.state == "ended" else "at"


def _parting_lines(diagnosis: Diagnosis) -> list[str]:
    parting = diagnosis.parting
    if parting is None or diagnosis.kind in _STALE:
        return []
    before = parting.before
    if before is None:
        lines = [f"  parted: at number {parting.number} of {parting.group}"]
    else:
        lines = [
            f"  parted: after {before.operation}, number {before.number} of {parting.group}, "
            f"at {format_places(before.places, 2)}"
        ]
    for arm in parting.arms[:_MAX_ARMS]:
        lines.append(f"    {name_ranks(arm.ranks)}: {_describe_arm(arm)}")
    if len(parting.arms) > _MAX_ARMS:
        lines.append(f"    and {len(parting.arms) - _MAX_ARMS} other ways")
    return lines


def _describe_arm(arm: Arm) -> str:
    if not arm.operation:
        return f"began no further collective{f'; at {format_places(arm.places)}' if arm.places else ''}"
    sizes = f" of {arm.sizes}" if arm.sizes not in ("", "[]", "[[]]") else ""
    return f"{arm.operation}{sizes} at {format_places(arm.places)}"


def _cluster_lines(report: Report, room: int) -> list[str]:
    clusters = report.diagnosis.clusters
    shown = clusters[: min(_MAX_CLUSTERS, (room - 2) // 2)]
    lines = [f"  ranks:  {report.diagnosis.world_size}, by where they stand"]
    for cluster in shown:
        lines += _describe_cluster(cluster, report)
    rest = clusters[len(shown) :]
    if rest:
        ranks = [rank for cluster in rest for rank in cluster.ranks]
        lines.append(f"    {len(rest)} other places: {name_ranks(ranks)}")
    return lines


def _describe_cluster(cluster: Cluster, report: Report) -> list[str]:
    first = cluster.standing
    mark = "*" if set(cluster.ranks) & set(report.diagnosis.suspects) else " "
    facts = [_describe_state(cluster)]
    if cluster.behind:
        facts.append(_describe_behind(cluster.behind))
    if first.step is not None:
        facts.append(f"step {first.step}")
    if first.phases:
        facts.append(f"phase {' > '.join(first.phases)}")
    ranks = set(cluster.ranks)
    hosts = {each.rank: each.host for each in report.standings if each.rank in ranks and each.host}
    who = name_ranks(cluster.ranks)
    if len(set(hosts.values())) > 1 and len(cluster.ranks) <= 64:
        who = name_ranks_by_host(hosts)
    lines = [f"  {mark} {who}: {'; '.join(facts)}"]
    if first.places:
        lines.append(f"      {seen_at(first)} {format_places(first.places)}")
    return lines


def _describe_state(cluster: Cluster) -> str:
    first, seconds = cluster.standing, f"{cluster.longest_s:.1f} s"
    operation = first.operation or "communication"
    if first.state == "waiting":
        return f"{'waits' if len(cluster.ranks) == 1 else 'wait'} in {operation} since {seconds}"
    if first.state == "raised":
        lost = f"gave up waiting in {operation}" if first.victim else "raised"
        return f"{lost}: {first.failure}"
    if first.state == "ended":
        code = "" if first.exit_code is None else f" with exit code {first.exit_code}"
        how = f" by {first.failure}" if first.failure else ""
        return f"ended{code}{how}, {seconds} ago"
    if first.state == "running":
        return f"{'computes' if first.busy else 'blocked'}, not in communication, since {seconds}"
    if first.state == "died":
        return f"{describe_end(first)}; last seen"
    texts = {
        "stopped": "stopped by a signal; last seen",
        "silent": f"holds the GIL, or gets no CPU; its watch thread has not run for {first.seen_s:.1f} s",
        "missing": "never heard of",
    }
    return texts[first.state]


def _describe_behind(behind: int) -> str:
    num = abs(behind)
    return f"{num} collective{'' if num == 1 else 's'} {'behind' if behind > 0 else 'ahead'}"


def _hint_lines(report: Report) -> list[str]:
    hints = shown_hints(report)
    if not hints:
        return []
    lines = []
    for hint in hints:
        lines.append(f"  lint:   {hint.describe()}")
        lines += [f"            line {row}: {text}" for row, text in hint.steps[:4]]
        if hint.help:
            lines.append(f"          help: {hint.help}")
    return lines


def shown_hints(report: Report) -> tuple[Hint, ...]:
    """The findings to show: where the cause may be no line of the program, only those that are sure enough."""
    found = report.hints or ()
    if report.diagnosis.kind in _STALE:
        found = tuple(hint for hint in found if hint.certainty != "possible" and hint.names_line)
    return found[:2]


def summarise(diagnosis: Diagnosis) -> str:
    """One line for the ranks that do not show the report."""
    suspects = set(diagnosis.suspects)
    found = [c.standing for c in diagnosis.clusters if suspects & set(c.ranks) and c.standing.places]
    if not found:
        return diagnosis.title
    limit = 2 if len(found) == 1 else 1
    shown = " and ".join(format_places(each.places, limit) for each in found[:3])
    return f"{diagnosis.title} ({seen_at(found[0])} {shown})"
