"""Collectives begun inside rank-local work, one kind after the other in the same two ranks."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch.distributed import all_reduce as imported_all_reduce
from torch.distributed import new_group as imported_new_group
from torch.nn.parallel import DistributedDataParallel

import spmdguard
from spmdguard.group import guard

from .parts import say, start_gloo


def collectives(sub_group: Any) -> dict[str, Callable[[], object]]:
    """Every kind of collective, by name, not yet begun."""
    ones = torch.ones(4)
    many = [torch.ones(4), torch.ones(4)]
    return {
        "all_reduce": lambda: dist.all_reduce(ones),
        "all_reduce imported by name": lambda: imported_all_reduce(ones),
        "all_reduce async": lambda: dist.all_reduce(ones, async_op=True),
        "all_reduce sub-group": lambda: dist.all_reduce(ones, group=sub_group),
        "broadcast": lambda: dist.broadcast(ones, 0),
        "all_gather": lambda: dist.all_gather(many, ones),
        "all_gather_into_tensor": lambda: dist.all_gather_into_tensor(torch.ones(8), ones),
        "reduce": lambda: dist.reduce(ones, 0),
        "gather": lambda: dist.gather(ones, many if dist.get_rank() == 0 else None, dst=0),
        "scatter": lambda: dist.scatter(ones, many if dist.get_rank() == 0 else None, src=0),
        "reduce_scatter_tensor": lambda: dist.reduce_scatter_tensor(torch.ones(2), ones),
        "all_to_all_single": lambda: dist.all_to_all_single(torch.ones(4), ones),
        "send": lambda: dist.send(ones, 1 - dist.get_rank()),
        "recv": lambda: dist.recv(ones, 1 - dist.get_rank()),
        "barrier": dist.barrier,
        "monitored_barrier": lambda: dist.monitored_barrier(timeout=timedelta(seconds=5)),
        "broadcast_object_list": lambda: dist.broadcast_object_list(["x"], 0),
        "all_gather_object": lambda: dist.all_gather_object([None, None], "x"),
        "functional all_reduce": lambda: funcol.all_reduce(ones, "sum", dist.group.WORLD),
        "functional all_gather_tensor": lambda: funcol.all_gather_tensor(ones, 0, dist.group.WORLD),
        "new_group": lambda: dist.new_group([0, 1]),
        "new_group imported by name": lambda: imported_new_group([0, 1]),
        "process group method": lambda: dist.group.WORLD.allreduce([ones]).wait(),
        "spmdguard barrier": lambda: spmdguard.barrier("x"),
        "spmdguard sync_should_stop": lambda: spmdguard.sync_should_stop(True),
        "started thread": lambda: in_thread(lambda: dist.all_reduce(ones)),
        "new thread pool": lambda: in_pool(lambda: dist.all_reduce(ones), None),
    }


def in_thread(call: Callable[[], object]) -> None:
    """Run in a new thread; its exception is raised here."""
    failures: list[BaseException] = []

    def work() -> None:
        try:
            call()
        except BaseException as exc:
            failures.append(exc)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(20)
    if failures:
        raise failures[0]


def in_pool(call: Callable[[], object], pool: concurrent.futures.Executor | None) -> None:
    if pool is None:
        with concurrent.futures.ThreadPoolExecutor(1) as fresh:
            return in_pool(call, fresh)
    pool.submit(call).result(20)
    return None


def outcome() -> str:
    """The deferred error as one word, cleared."""
    error = spmdguard.deferred_error()
    try:
        spmdguard.raise_if_deferred_error()
    except spmdguard.CollectiveInRankLocalError as refused:
        return f"refused {refused.operation}"
    except Exception as other:
        return f"raised {other!r}"
    return f"ran {error}"


def every_kind() -> None:
    """Each kind is refused in a region, on one rank only where the others do not even try; then all meet."""
    start_gloo(20)
    sub_group = dist.new_group([0, 1])
    dist.all_reduce(torch.ones(1), group=sub_group)
    for name, begin in collectives(sub_group).items():
        before = dist.group.WORLD._get_sequence_number_for_group()
        spmdguard.try_or_defer(begin)
        began = dist.group.WORLD._get_sequence_number_for_group() - before
        say(f"{name}: {outcome()}; began {began}")
    spmdguard.barrier("end")
    say(f"mechanism: {guard.installed}")
    dist.destroy_process_group()


def models() -> None:
    """DDP forward with buffers, DDP backward, FSDP2 and DCP save are refused; the ranks still meet."""
    start_gloo(20)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
    wrapped = DistributedDataParallel(model)
    batch = torch.randn(3, 4)
    spmdguard.try_or_defer(lambda: wrapped(batch))
    say("ddp forward:", outcome())
    loss = wrapped(batch).sum()
    spmdguard.try_or_defer(loss.backward)
    say("ddp backward:", outcome())
    from torch.distributed import checkpoint
    from torch.distributed.fsdp import fully_shard

    sharded = torch.nn.Linear(4, 4)
    fully_shard(sharded, mesh=dist.init_device_mesh("cpu", (2,)))
    spmdguard.try_or_defer(lambda: sharded(batch))
    say("fsdp2 forward:", outcome())
    spmdguard.try_or_defer(lambda: checkpoint.save({"x": torch.ones(2)}, checkpoint_id="dcp"))
    say("dcp save:", outcome())
    spmdguard.barrier("end")
    dist.destroy_process_group()


def outside_regions() -> None:
    """Regions do not leak: other threads, other tasks, pools and the time after them may communicate."""
    start_gloo(20)
    pool = concurrent.futures.ThreadPoolExecutor(1)

    @spmdguard.rank_local
    def open_pool() -> int | None:
        return pool.submit(lambda: 1).result(20)

    @spmdguard.rank_local
    async def local(other_may_run: asyncio.Event, done: asyncio.Event) -> None:
        other_may_run.set()
        await done.wait()

    async def other(other_may_run: asyncio.Event, done: asyncio.Event) -> None:
        await other_may_run.wait()
        dist.all_reduce(torch.ones(1))
        done.set()

    async def both() -> None:
        events = asyncio.Event(), asyncio.Event()
        await asyncio.gather(local(*events), other(*events))

    open_pool()
    pool.submit(lambda: dist.all_reduce(torch.ones(1))).result(20)
    say("pool opened in a region:", outcome())
    asyncio.run(both())
    say("task beside a rank-local one:", outcome())
    items = spmdguard.rank_local(lambda: (yield from range(2)))
    for _ in items():
        dist.all_reduce(torch.ones(1))
    say("consumer of a rank-local generator:", outcome())
    spmdguard.try_or_defer(lambda: in_pool(lambda: dist.all_reduce(torch.ones(1)), pool))
    say("region that submits to an old pool:", outcome())
    dist.all_reduce(torch.ones(1))
    say("afterwards:", outcome())
    dist.destroy_process_group()
    pool.shutdown()


def tensor_work() -> None:
    """Whatever is no collective works in a region: higher-order operators, autograd, compile, export."""
    start_gloo(20)
    from torch.nn.attention.flex_attention import flex_attention

    query = torch.randn(1, 2, 16, 8)
    compiled = torch.compile(lambda x: (x * 2).sin(), backend="aot_eager")
    work: dict[str, Callable[[], object]] = {
        "matmul": lambda: query @ query.transpose(-1, -2),
        "flex_attention": lambda: flex_attention(query, query, query),
        "cond": lambda: torch.cond(query.sum() > 0, torch.sin, torch.cos, (query,)),
        "vmap": lambda: torch.vmap(torch.sin)(query),
        "grad": lambda: torch.func.grad(lambda x: (x**2).sum())(query),
        "backward": lambda: query.clone().requires_grad_().sum().backward(),
        "compile": lambda: compiled(query),
        "export": lambda: torch.export.export(torch.nn.Linear(8, 8), (query,)),
        "single-process module": lambda: torch.nn.Linear(8, 8)(query),
    }
    for name, do in work.items():
        spmdguard.try_or_defer(do)
        say(f"{name}: {outcome()}")
    dist.destroy_process_group()


def chosen_mechanism() -> None:
    """Which mechanism the first region installs."""
    with spmdguard.deferring("first region"):
        pass
    say(guard.installed)


def thread_fails() -> None:
    """A thread that rank-local work started ends by an exception."""
    start_gloo(20)

    def lose() -> None:
        raise OSError("thread")

    with spmdguard.deferring("upload"):
        thread = threading.Thread(target=lose)
        thread.start()
        thread.join(20)
    say(spmdguard.sync_should_stop(), spmdguard.stop_reason())
    spmdguard.destroy_process_group()
