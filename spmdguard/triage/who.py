"""Which process wrote what: ranks from tags, pids, local ranks and the launcher's table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from spmdguard.format import format_ranks
from spmdguard.triage.events import Event, Evidence
from spmdguard.triage.exits import Exit
from spmdguard.triage.tags import Moment, Tag


@dataclass(frozen=True, slots=True)
class Who:
    """One process; ``rank`` is None where nothing tells it, ``label`` says then what is known."""

    rank: int | None
    label: str = ""

    def __str__(self) -> str:
        return (
            f"rank {self.rank}" if self.rank is not None else self.label or "a process that cannot be named"
        )


def name_all(people: Iterable[Who]) -> str:
    """``"ranks 0-2, 5"``, ``"rank 3"``, or the labels of those without a rank."""
    everybody = list(people)
    ranks = sorted(who.rank for who in everybody if who.rank is not None)
    parts = [f"rank{'s' if len(ranks) > 1 else ''} {format_ranks(ranks)}"] if ranks else []
    labels = list(dict.fromkeys(str(who) for who in everybody if who.rank is None))
    if len(labels) > 3:
        labels = [*labels[:3], f"{len(labels) - 3} more"]
    return ", ".join(parts + labels)


class Processes:
    """The processes of a job, as far as its logs tell."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._by_pid: dict[int, int] = {pid: rank for (_, pid), rank in evidence.rank_of_pid.items()}
        self._by_local: dict[tuple[str | None, int], int] = {}
        for ended in evidence.exits:
            if ended.rank is not None and ended.pid is not None:
                self._by_pid[ended.pid] = ended.rank
            if ended.rank is not None and ended.local_rank is not None:
                self._by_local[ended.host, ended.local_rank] = ended.rank
        self.hosts = {
            host
            for host in (
                *(tag.host for tag in evidence.streams.values()),
                *(ended.host for ended in evidence.exits),
            )
            if host
        }
        self._known = self._everybody()

    def rank(self, tag: Tag) -> int | None:
        """The global rank behind a tag."""
        if tag.rank is not None:
            return tag.rank
        if tag.pid is not None and tag.pid in self._by_pid:
            return self._by_pid[tag.pid]
        if tag.local_rank is not None:
            known = {
                rank
                for (host, local), rank in self._by_local.items()
                if local == tag.local_rank and host in (tag.host, None)
            }
            if not tag.host and not known:
                known = {rank for (_, local), rank in self._by_local.items() if local == tag.local_rank}
            if len(known) == 1:
                return next(iter(known))
            if len(self.hosts) <= 1 and not known:
                return tag.local_rank
        return None

    def of(self, event: Event) -> Who:
        """Who wrote an event."""
        return self._who(event.tag, event.line.file)

    def of_exit(self, ended: Exit) -> Who:
        """Whose end this is."""
        if ended.rank is not None:
            return Who(ended.rank)
        return self._who(Tag(None, ended.local_rank, ended.host, ended.pid), ended.line.file)

    def when(self, event: Event) -> Moment | None:
        """When an event was written, or else when the launcher saw that process end."""
        if event.tag.when:
            return event.tag.when
        who = self.of(event)
        ends = [ended.when for ended in self._evidence.exits if ended.when and self.of_exit(ended) == who]
        return ends[0] if ends else None

    def root(self) -> Who | None:
        """The process that the launcher saw fail first."""
        for ended in self._evidence.exits:
            if ended.root:
                return self.of_exit(ended)
        return None

    def everybody(self) -> tuple[Who, ...]:
        """All ranks known of: seen in a tag or a table, or below the world size that a log tells."""
        return self._known

    def last_words(self, who: Who) -> str:
        """The last line of a process that belongs to no traceback."""
        lines = [
            line
            for stream, line in self._evidence.last_lines.items()
            if self._who(self._evidence.streams[stream], line.file) == who
        ]
        return lines[-1].text.strip()[:160] if lines else ""

    def _who(self, tag: Tag, file: str) -> Who:
        rank = self.rank(tag)
        if rank is not None:
            return Who(rank)
        parts = [tag.actor, f"local rank {tag.local_rank}" if tag.local_rank is not None else ""]
        parts += [f"pid {tag.pid}" if tag.pid is not None else "", f"host {tag.host}" if tag.host else ""]
        label = ", ".join(part for part in parts if part)
        return Who(None, label or f"a process that wrote to {file}")

    def _everybody(self) -> tuple[Who, ...]:
        ranks = {self.rank(tag) for tag in self._evidence.streams.values()}
        ranks |= {ended.rank for ended in self._evidence.exits}
        size = self._evidence.world_size
        if size is not None and size <= 100_000:
            ranks |= set(range(size))
        return tuple(Who(rank) for rank in sorted(rank for rank in ranks if rank is not None))
