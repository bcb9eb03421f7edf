"""Layouts of logs: how launchers, schedulers and loggers write down what ranks print.

Each layout turns the lines of a scenario, merged in the order in which they were written, into files. They are
rebuilt from the forms seen in public reports of failed jobs.
"""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tests.runtime.triage.scenarios import Scenario

START = datetime(2026, 3, 5, 7, 0, 0)
Row = tuple[float, int, str]  # second, rank, line
Files = dict[str, bytes]


@dataclass(frozen=True)
class Layout:
    """``write`` makes the files; ``names_ranks`` tells whether every process can be named by its rank."""

    name: str
    write: Callable[[Scenario, Sequence[Row]], Files]
    names_ranks: bool = True


def merge(scenario: Scenario, seed: int, *, by_time: bool = True) -> list[Row]:
    """All lines in the order of one log: blocks that overlap in time are mixed line by line.

    Without ``by_time`` the ranks' outputs are mixed at random, as buffering does; each keeps its own order.
    """
    dice = random.Random(seed)
    queues: dict[int, list[Row]] = {}
    for block in sorted(scenario.blocks, key=lambda block: block.second):
        queues.setdefault(block.rank, []).extend((block.second, block.rank, line) for line in block.lines)
    rows: list[Row] = []
    while any(queues.values()):
        waiting = [rank for rank, queue in queues.items() if queue]
        if by_time:
            soonest = min(queues[rank][0][0] for rank in waiting)
            waiting = [rank for rank in waiting if queues[rank][0][0] < soonest + 0.5]
        rows.append(queues[dice.choice(waiting)].pop(0))
    return rows


def moment(second: float) -> datetime:
    """When something happened."""
    return START + timedelta(seconds=second)


def torchrun_table(scenario: Scenario) -> list[str]:
    """The closing table of torchrun."""
    if scenario.first_exit is None:
        return []
    ends = {block.rank: block.second for block in scenario.blocks}

    def entry(number: int, rank: int) -> list[str]:
        code = scenario.exits[rank]
        why = (
            "Signal 9 (SIGKILL) received by PID 1003"
            if code == -9
            else "To enable traceback see: https://pytorch.org/docs"
        )
        when = moment(60.0 if code == -9 else ends[rank] + 1)
        return [
            f"[{number}]:",
            f"  time      : {when:%Y-%m-%d_%H:%M:%S}",
            "  host      : node0",
            f"  rank      : {rank} (local_rank: {rank})",
            f"  exitcode  : {code} (pid: {1000 + rank})",
            "  error_file: <N/A>",
            f"  traceback : {why}",
        ]

    others = [rank for rank in scenario.exits if rank != scenario.first_exit]
    failures = [line for number, rank in enumerate(others, 1) for line in entry(number, rank)]
    code, first = scenario.exits[scenario.first_exit], scenario.first_exit
    return [
        f"E0305 07:01:02.345000 900 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: {code}) "
        f"local_rank: {first} (pid: {1000 + first}) of binary: /opt/env/bin/python",
        "Traceback (most recent call last):",
        '  File "/opt/env/bin/torchrun", line 8, in <module>',
        "    sys.exit(main())",
        '  File "/opt/env/lib/python3.11/site-packages/torch/distributed/launcher/api.py", line 263, in launch_agent',
        "    raise ChildFailedError(",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "=" * 60,
        "train.py FAILED",
        "-" * 60,
        "Failures:",
        *(failures or ["  <NO_OTHER_FAILURES>"]),
        "-" * 60,
        "Root Cause (first observed failure):",
        *entry(0, scenario.first_exit),
        "=" * 60,
    ]


def srun_end(scenario: Scenario) -> list[str]:
    """The closing lines of srun."""
    return [
        f"srun: error: node{rank}: task {rank}: "
        + ("Killed" if code == -9 else f"Exited with exit code {abs(code)}")
        for rank, code in sorted(scenario.exits.items(), key=lambda item: item[0] != scenario.first_exit)
    ]


def _one_file(
    prefix: Callable[[Row], str], end: Callable[[Scenario], list[str]] = torchrun_table
) -> Callable[[Scenario, Sequence[Row]], Files]:
    def write(scenario: Scenario, rows: Sequence[Row]) -> Files:
        return {"job.log": _join([f"{prefix(row)}{row[2]}" for row in rows] + end(scenario))}

    return write


def _per_rank(
    name: str,
    prefix: Callable[[Row], str] = lambda row: "",
    end: Callable[[Scenario], list[str]] = torchrun_table,
) -> Callable[[Scenario, Sequence[Row]], Files]:
    def write(scenario: Scenario, rows: Sequence[Row]) -> Files:
        files: dict[str, list[str]] = {"launcher.log": end(scenario)}
        for row in rows:
            files.setdefault(name.format(rank=row[1]), []).append(f"{prefix(row)}{row[2]}")
        return {file: _join(lines) for file, lines in files.items()}

    return write


def _join(lines: Iterable[str], end: str = "\n") -> bytes:
    return "".join(f"{line}{end}" for line in lines).encode()


def _rank_tag(row: Row) -> str:
    """What torch puts before the lines of a traceback; its own messages carry the tag already."""
    return "" if row[2].startswith("[rank") else f"[rank{row[1]}]: "


def _glog(row: Row) -> str:
    return f"E{moment(row[0]):%m%d %H:%M:%S}.123000 {1000 + row[1]} train.py:12] [rank{row[1]}] "


def _gzipped(scenario: Scenario, rows: Sequence[Row]) -> Files:
    files = _per_rank("rank-{rank}.log.gz")(scenario, rows)
    return {name: gzip.compress(data) if name.endswith(".gz") else data for name, data in files.items()}


def _progress_and_crlf(scenario: Scenario, rows: Sequence[Row]) -> Files:
    lines = []
    for row in rows:
        bar = (
            f"Epoch 0:  6%|#2  | {int(row[0])}/500 [00:12<04:00]\r" if row[2].startswith("Traceback") else ""
        )
        lines.append(f"{bar}[default{row[1]}]:{row[2]}")
    return {"job.log": _join(lines + torchrun_table(scenario), "\r\n")}


def _boxes(scenario: Scenario, rows: Sequence[Row]) -> Files:
    """Tracebacks drawn as boxes by ``rich``, below the tag of torchrun's ``--tee``."""
    lines: list[str] = []
    inside: dict[int, bool] = {}
    for _, rank, text in rows:
        tag = f"[default{rank}]:"
        if text.startswith("Traceback"):
            inside[rank] = True
            lines.append(
                f"{tag}╭───────────────────── Traceback (most recent call last) ──────────────────────╮"
            )
        elif inside.get(rank) and text.startswith("  File "):
            path, number, function = (
                text.split('"')[1],
                text.split("line ")[1].split(",")[0],
                text.rsplit(" in ", 1)[1],
            )
            lines.append(f"{tag}│ {path}:{number} in {function:<40} │")
            lines.append(
                f"{tag}│                                                                            │"
            )
        elif inside.get(rank) and text.startswith("    "):
            lines.append(f"{tag}│ ❱ 12 {text:<70} │")
        else:
            if inside.pop(rank, False):
                lines.append(
                    f"{tag}╰────────────────────────────────────────────────────────────────────────────╯"
                )
            lines.append(f"{tag}{text}")
    return {"job.log": _join(lines + torchrun_table(scenario))}


def _ray(row: Row) -> str:
    return f"\x1b[36m(RayTrainWorker pid={1000 + row[1]}, ip=10.0.0.{row[1] + 1})\x1b[0m "


def _loguru(row: Row) -> str:
    return f"{moment(row[0]):%Y-%m-%d %H:%M:%S}.123 | ERROR    | train:main:12 - [rank {row[1]}] "


LAYOUTS = (
    Layout("torch's own tags", _one_file(_rank_tag)),
    Layout("torchrun --tee", _one_file(lambda row: f"[default{row[1]}]:")),
    Layout("torchrun --tee, torch's tags", _one_file(lambda row: f"[default{row[1]}]:{_rank_tag(row)}")),
    Layout("torchrun --role", _one_file(lambda row: f"[trainer{row[1]}]:{_rank_tag(row)}")),
    Layout("torchrun --log-dir", _per_rank("run_x/attempt_0/{rank}/stderr.log")),
    Layout("srun --label", _one_file(lambda row: f"{row[1]}: ", srun_end)),
    Layout(
        "srun --label, padded, dates",
        _one_file(lambda row: f"{row[1]:>3}: {moment(row[0]):%Y-%m-%d %H:%M:%S} ", srun_end),
    ),
    Layout("srun, a file per task", _per_rank("slurm-44121_{rank}.out", end=srun_end)),
    Layout("mpirun --tag-output", _one_file(lambda row: f"[1,{row[1]}]<stderr>:")),
    Layout("Ray", _one_file(_ray)),
    Layout("Ray, torch's tags", _one_file(lambda row: _ray(row) + _rank_tag(row))),
    Layout(
        "kubectl logs --prefix", _one_file(lambda row: f"[pod/llm-worker-{row[1]}/pytorch] {_rank_tag(row)}")
    ),
    Layout("docker compose", _one_file(lambda row: f"trainer-{row[1]}  | {_rank_tag(row)}")),
    Layout("pdsh", _one_file(lambda row: f"node{row[1]}: {_rank_tag(row)}")),
    Layout(
        "logging with brackets",
        _one_file(lambda row: f"[{moment(row[0]):%Y-%m-%d %H:%M:%S},123] [ERROR] [rank {row[1]}] "),
    ),
    Layout("Lightning", _one_file(lambda row: f"[rank: {row[1]}] ")),
    Layout(
        "container dates, a file per rank",
        _per_rank("rank_{rank}.log", lambda row: f"{moment(row[0]):%Y-%m-%dT%H:%M:%S}.123456789Z "),
    ),
    Layout("gzip, a file per rank", _gzipped),
    Layout("progress bars and CRLF", _progress_and_crlf),
    Layout("loguru", _one_file(_loguru)),
    Layout("glog", _one_file(_glog)),
    Layout("milabench", _one_file(lambda row: f"llm-full.node{row[1]} [stderr] {_rank_tag(row)}")),
    Layout("rich boxes", _boxes),
    Layout("no tags at all", _one_file(lambda row: ""), names_ranks=False),
)
