"""Logs of ``spmdguard run``: its reports are taken at their word, its remarks name the rank of a traceback."""

from __future__ import annotations

from pathlib import Path

from spmdguard.triage.lines import find_logs
from tests.runtime.triage.helpers import ranks_of, verdict_of

STALL = """\
spmdguard: rank 0 (process 11 on host a) of 2
rank 0: finished step 3
spmdguard: STALL: rank 0 began barrier where rank 1 began all_reduce, number 12 of group 'default_pg' (ranks 0-1)
  saw:   rank 1 has waited 4.0 s; the limit is 4 s (2026-11-29 20:14:55 +0000)
  parted: after all_reduce, number 11 of group 'default_pg' (ranks 0-1), at train.py:62 in mean < train.py:103 in train
    rank 0: barrier at train.py:115 in train < train.py:126 in main
    rank 1: all_reduce of [[676]] at train.py:72 in step < train.py:103 in train
  ranks:  2, by where they stand
  * rank 0: waits in barrier since 4.4 s
      at train.py:115 in train < train.py:126 in main
  * rank 1: waits in all_reduce since 4.5 s
      at train.py:72 in step < train.py:103 in train
  lint:   train.py:112 SPG301 missing-stop-sync: torch.cuda.OutOfMemoryError is handled on line 40
  do:    every rank must call the same collectives in the same order; look at what decides between these
spmdguard: rank 0 leaves the stalled run: rank 0 began barrier where rank 1 began all_reduce
  it waited 4.4 s in barrier at train.py:115 in train
"""
BOTH = """\
spmdguard: rank 0 failed too; the first cause: rank 1 failed first: ValueError: first (at boom.py:8 in <module>)
Traceback (most recent call last):
  File "boom.py", line 9, in <module>
    raise KeyError("second")
KeyError: 'second'
spmdguard: not the first failure: rank 1 failed first: ValueError: first (at boom.py:8 in <module>)
spmdguard: rank 1 failed
Traceback (most recent call last):
  File "boom.py", line 8, in <module>
    raise ValueError("first")
ValueError: first
"""
ENDED = """\
spmdguard: FAILED: rank 0 ended while rank 1 waits in DDP forward
  saw:   rank 1 waits for rank 0, which has gone (2026-11-30 08:50:12 +0000)
  ranks:  2, by where they stand
  * rank 0: ended with exit code 0, 2.5 s ago; 1 collective behind
      last seen at src/train.py:34 in fit < train.py:41 in main
    rank 1: waits in DDP forward since 2.5 s
      at src/train.py:17 in loss < train.py:31 in fit
  do:    every rank must come to the same collectives; look at how rank 0 could leave before them
"""
VICTIM = """\
spmdguard: rank 1 failed
Traceback (most recent call last):
  File "boom.py", line 8, in <module>
    raise ValueError("bad sample in shard 3")
ValueError: bad sample in shard 3
spmdguard: rank 0 leaves, it is a victim; the cause: rank 1 failed first: ValueError: bad sample in shard 3
  it waited 0.3 s in all_reduce at boom.py:9 in <module>
"""


def test_a_stall_report_is_the_verdict(tmp_path: Path):
    """Who stood where when the ranks parted; words inside the report are no messages of their own."""
    verdict = verdict_of(tmp_path, {"job.log": STALL.encode()})
    assert (verdict.kind, verdict.error) == (
        "parted",
        "rank 0 began barrier where rank 1 began all_reduce, number 12 of group 'default_pg' (ranks 0-1)",
    )
    assert [(stand.place.line, stand.text) for stand in verdict.stands if stand.place] == [
        (115, "barrier"),
        (72, "all_reduce of [[676]]"),
    ]


def test_a_rank_that_ended_keeps_its_line(tmp_path: Path):
    """A report says of a rank that ended where it was last seen; that is its place."""
    verdict = verdict_of(tmp_path, {"job.log": ENDED.encode()})
    assert [stand.place.line for stand in verdict.stands if stand.place] == [34, 17]


def test_a_rank_that_failed_too_is_not_the_first(tmp_path: Path):
    """A rank says that another failed before it: that one is the verdict, whatever comes first in the log."""
    head, cut, tail = BOTH.partition("spmdguard: rank 1 failed\n")
    for text in (BOTH, f"{cut}{tail}{head}"):
        verdict = verdict_of(tmp_path, {"job.log": text.encode()})
        assert (verdict.kind, ranks_of(verdict), verdict.error) == ("failed", (1,), "ValueError: first")


def test_a_remark_names_the_rank_of_the_next_traceback(tmp_path: Path):
    """Lines without tags: the rank is known all the same, and what follows is no part of the message."""
    verdict = verdict_of(tmp_path, {"job.log": VICTIM.encode()})
    assert (verdict.kind, ranks_of(verdict), verdict.error) == (
        "failed",
        (1,),
        "ValueError: bad sample in shard 3",
    )


def test_a_folder_is_searched_for_logs_alone(tmp_path: Path):
    """Sources, settings, pages and hidden folders beside the logs are passed over; a named file is read as it is."""
    for name in (
        "train.py",
        "stall.html",
        "stall.json",
        ".cache/x.log",
        "a.log",
        "out/3/stderr.log",
        "trace_rank_3",
        "job.o123",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    found = {str(path.relative_to(tmp_path)) for path in find_logs([tmp_path])}
    assert found == {"a.log", "out/3/stderr.log", "trace_rank_3", "job.o123"}
    assert [tmp_path / "train.py"] == find_logs([tmp_path / "train.py"])


def test_an_interrupt_is_told_with_its_ranks(tmp_path: Path):
    """Ctrl-C under `spmdguard run`: no traceback is in the log, and `spmdguard` is no host that wrote the lines."""
    log = (
        "spmdguard: rank 0 (process 11 on host a) of 2\n"
        "spmdguard: rank 1 (process 12 on host a) of 2\n"
        "spmdguard: rank 0 was interrupted (KeyboardInterrupt) at train.py:11 in wait < train.py:19 in main\n"
        "spmdguard: rank 1 was interrupted; it had waited 2.6 s in recv at train.py:14 in wait\n"
        "spmdguard: the run was interrupted (SIGINT); all ranks have ended\n"
    )
    verdict = verdict_of(tmp_path, {"run.log": log.encode()})
    assert (verdict.kind, ranks_of(verdict), verdict.means) == (
        "suspected",
        (0,),
        "somebody interrupted the job",
    )
