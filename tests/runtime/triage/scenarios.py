"""Failed jobs as what each rank writes and when: the plain truth from which logs of every layout are made.

A scenario lists, per rank, blocks of lines with the second at which they are written; ``expected`` says what a
reader of the logs should conclude. The wording of the messages is that of torch, NCCL, gloo and Python.
"""

from __future__ import annotations

from dataclasses import dataclass, field

WORLD = 4


@dataclass(frozen=True)
class Block:
    """Lines that one rank writes at once. ``native`` lines carry torch's own rank tag and time already."""

    second: float
    rank: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Scenario:
    """One failed job. ``kind``, ``ranks`` and ``error`` are what triage should say; ``exits`` is for the launcher."""

    name: str
    blocks: tuple[Block, ...]
    kind: str
    ranks: tuple[int, ...]
    error: str
    line: int | None
    exits: dict[int, int] = field(default_factory=dict)
    first_exit: int | None = None


def traceback(error: str, *frames: tuple[int, str, str], inside: tuple[str, ...] = ()) -> tuple[str, ...]:
    """A traceback through ``train.py``; each frame is line, function, source."""
    lines = ["Traceback (most recent call last):"]
    for number, function, source in frames:
        lines += [f'  File "/job/src/train.py", line {number}, in {function}', f"    {source}"]
    for path in inside:
        lines += [f'  File "{path}", line 99, in wrapper', "    return func(*args, **kwargs)"]
    return (*lines, error)


_TORCH = ("/opt/env/lib/python3.11/site-packages/torch/distributed/c10d_logger.py",)
_MAIN = ((210, "<module>", "main()"), (180, "main", "train(model, loader)"))
_ALLREDUCE = (*_MAIN, (128, "train", "dist.all_reduce(loss)"))


def gloo_closed(port: int) -> tuple[str, ...]:
    """What gloo says on a rank whose partner is gone."""
    return traceback(
        "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer "
        f"[10.0.0.7]:{port}",
        *_ALLREDUCE,
        inside=_TORCH,
    )


def watchdog(rank: int, sequence: int, operation: str, enqueued: int, completed: int) -> tuple[str, ...]:
    """What NCCL's watchdog floods a log with."""
    head = f"[rank{rank}]:[E305 07:31:0{rank}.386032277 ProcessGroupNCCL.cpp"
    work = f"WorkNCCL(SeqNum={sequence}, OpType={operation}, NumelIn=1, NumelOut=1, Timeout(ms)=600000)"
    ran = "ran for 600025 milliseconds before timing out."
    return (
        f"{head}:607] [Rank {rank}] Watchdog caught collective operation timeout: {work} {ran}",
        f"{head}:1664] [PG 0 (default_pg) Rank {rank}] Exception (either an error or timeout) detected by watchdog at "
        f"work: {sequence}, last enqueued NCCL work: {enqueued}, last completed NCCL work: {completed}.",
        f"{head}:621] [Rank {rank}] Some NCCL operations have failed or timed out. Due to the asynchronous nature of "
        "CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.",
        f"{head}:627] [Rank {rank}] To avoid data inconsistency, we are taking the entire process down.",
        "terminate called after throwing an instance of 'c10::DistBackendError'",
        f"  what():  [PG 0 (default_pg) Rank {rank}] Process group watchdog thread terminated with exception: [Rank "
        f"{rank}] Watchdog caught collective operation timeout: {work} {ran}",
        "Exception raised from checkTimeout at ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:609",
        "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x96 (0x7f1e in /opt/env/lib/libc10.so)",
        "frame #1: clone + 0x43 (0x15 in /lib64/libc.so.6)",
    )


def _noise() -> tuple[Block, ...]:
    blocks = []
    for rank in range(WORLD):
        blocks.append(
            Block(
                rank * 0.1, rank, (f"world_size: {WORLD}", "loading the data", "UserWarning: slow path taken")
            )
        )
        blocks.append(Block(20 + rank * 0.1, rank, ("step 100 loss 2.31", "step 200 loss 2.05")))
    return tuple(blocks)


def _others(culprit: int, second: float) -> tuple[Block, ...]:
    ranks = [rank for rank in range(WORLD) if rank != culprit]
    return tuple(Block(second + rank * 0.01, rank, gloo_closed(40000 + rank)) for rank in ranks)


_DISK = traceback(
    "OSError: [Errno 28] No space left on device: '/scratch/metrics.json'",
    *_MAIN,
    (131, "train", "save_metrics(step, loss)"),
    (88, "save_metrics", "json.dump(row, file)"),
)
_CHAINED = (
    *traceback("KeyError: 'lr_max'", *_MAIN, (57, "schedule", "top = config['lr_max']")),
    "",
    "During handling of the above exception, another exception occurred:",
    "",
    *traceback(
        "ValueError: the schedule needs lr_max",
        *_MAIN,
        (60, "schedule", "raise ValueError('the schedule needs lr_max')"),
    ),
)
_OOM = traceback(
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 2 has a total capacity of 79.11 GiB "
    "of which 1.02 GiB is free.",
    *_MAIN,
    (125, "train", "loss = model(batch)"),
)
_ASSERT = (
    "../aten/src/ATen/native/cuda/Indexing.cu:1290: indexSelectLargeIndex: block: [3,0,0], thread: [64,0,0] Assertion "
    "`srcIndex < srcSelectDimSize` failed.",
    *traceback(
        "RuntimeError: CUDA error: device-side assert triggered", *_MAIN, (126, "train", "loss.backward()")
    ),
)
_TRACKER = traceback(
    "wandb.errors.errors.CommError: Error communicating with wandb process",
    *_MAIN,
    (133, "train", "wandb.log({'loss': loss})"),
)
_TWO_ARGUMENTS = traceback(
    "my.pipeline.ShardProblem: ('shard-0017.tar', 404)",
    *_MAIN,
    (71, "batches", "raise ShardProblem(name, 404)"),
)

SCENARIOS = (
    Scenario(
        "disk full on rank 0",
        (*_noise(), Block(60.5, 0, _DISK), *_others(0, 61.2)),
        "failed",
        (0,),
        "No space left on device",
        88,
        {0: 1, 1: 1, 2: 1, 3: 1},
        0,
    ),
    Scenario(
        "chained exception on rank 2",
        (*_noise(), Block(60.5, 2, _CHAINED), *_others(2, 61.2)),
        "failed",
        (2,),
        "the schedule needs lr_max",
        60,
        {0: 1, 1: 1, 2: 1, 3: 1},
        2,
    ),
    Scenario(
        "out of memory on rank 2, then the watchdog of the others",
        (
            *_noise(),
            Block(60.5, 2, _OOM),
            *(Block(670.0 + rank, rank, watchdog(rank, 118, "ALLREDUCE", 119, 117)) for rank in (0, 1, 3)),
        ),
        "failed",
        (2,),
        "CUDA out of memory",
        125,
        {0: -6, 1: -6, 2: 1, 3: -6},
        2,
    ),
    Scenario(
        "device-side assert on rank 3",
        (*_noise(), Block(60.5, 3, _ASSERT), *_others(3, 61.2)),
        "failed",
        (3,),
        "device-side assert",
        126,
        {3: 1},
        3,
    ),
    Scenario(
        "tracker on rank 0",
        (*_noise(), Block(60.5, 0, _TRACKER), *_others(0, 61.2)),
        "failed",
        (0,),
        "CommError",
        133,
        {0: 1},
        0,
    ),
    Scenario(
        "an exception of the user's own with two arguments",
        (*_noise(), Block(60.5, 1, _TWO_ARGUMENTS), *_others(1, 61.2)),
        "failed",
        (1,),
        "ShardProblem",
        71,
        {1: 1, 0: 1},
        1,
    ),
    Scenario(
        "missing package on every rank",
        (
            *_noise(),
            *(
                Block(
                    30 + rank * 0.01,
                    rank,
                    traceback(
                        "ModuleNotFoundError: No module named 'flash_attn'",
                        (3, "<module>", "import flash_attn"),
                    ),
                )
                for rank in range(WORLD)
            ),
        ),
        "failed",
        (0, 1, 2, 3),
        "flash_attn",
        3,
        dict.fromkeys(range(WORLD), 1),
        0,
    ),
    Scenario(
        "killed by the kernel",
        (*_noise(), *_others(3, 61.2)),
        "killed",
        (3,),
        "SIGKILL",
        None,
        {3: -9, 0: 1, 1: 1, 2: 1},
        3,
    ),
    Scenario(
        "ranks parted, NCCL says who is behind",
        (
            *_noise(),
            *(Block(670.0 + rank, rank, watchdog(rank, 118, "ALLREDUCE", 118, 117)) for rank in (0, 2, 3)),
            Block(671.0, 1, watchdog(1, 117, "BROADCAST", 117, 116)),
        ),
        "parted",
        (1,),
        "collective operation timeout",
        None,
        dict.fromkeys(range(WORLD), -6),
        0,
    ),
    Scenario(
        "one rank left without an error",
        (*_noise(), Block(55.0, 1, ("rank 1 stops early at step 220",)), *_others(1, 61.2)),
        "left",
        (1,),
        "Connection closed by peer",
        128,
        {0: 1, 2: 1, 3: 1},
        0,
    ),
)
