"""SPG108: collectives in background threads."""

from __future__ import annotations

from tests.lint.rules.marked import agree

THREADS = ("SPG101", "SPG104", "SPG108")


def test_ways_to_start_a_thread() -> None:
    """Executors, threads, subclasses of Thread: reported at the collective that runs there."""
    for start in (
        "pool.submit(collect, rows)",
        "pool.map(collect, [rows])",
        "threading.Thread(target=collect, args=(rows,)).start()",
        "threading.Thread(target=lambda: collect(rows)).start()",
        "threading.Timer(5, collect).start()",
        "task = asyncio.create_task(asyncio.to_thread(collect, rows))",
        "Collector().start()",
    ):
        assert agree(
            f"""
            import asyncio
            import threading
            from concurrent.futures import ThreadPoolExecutor
            import torch.distributed as dist

            def collect(rows):
                dist.all_gather_object(rows, 1)  # SPG108

            class Collector(threading.Thread):
                def run(self):
                    collect([])

            async def main(rows):
                dist.barrier()
                pool = ThreadPoolExecutor()
                {start}
            """,
            *THREADS,
        )


def test_threads_that_are_waited_for_at_once() -> None:
    """One thread is at work at a time, in the order of the text: joined, or its result asked for, at once."""
    for start, code in (
        (
            "thread = threading.Thread(target=collect, args=(rows,))\n    thread.start()\n    thread.join()",
            "",
        ),
        ("thread = Collector()\n    thread.start()\n    thread.join()", ""),
        ("pool.submit(collect, rows).result()", ""),
        ("future = pool.submit(collect, rows)\n    future.result()", ""),
        (
            "many = [threading.Thread(target=collect, args=(rows,)) for _ in range(3)]\n"
            "    for one in many:\n        one.start()\n        one.join()",
            "",
        ),
        (
            "many = [threading.Thread(target=collect, args=(rows,)) for _ in range(3)]\n"
            "    for one in many:\n        one.start()\n    for one in many:\n        one.join()",
            "  # SPG108",
        ),
        (
            "thread = threading.Thread(target=collect, args=(rows,))\n    thread.start()\n"
            "    dist.barrier()\n    thread.join()",
            "  # SPG108",
        ),
        (
            "thread = threading.Thread(target=collect, args=(rows,))\n    thread.start()\n    thread.join(1.0)",
            "  # SPG108",
        ),
        ("future = pool.submit(collect, rows)\n    print(1)\n    future.result()", "  # SPG108"),
        ("pool.submit(collect, rows).result(timeout=3)", "  # SPG108"),
    ):
        assert agree(
            f"""
import threading
from concurrent.futures import ThreadPoolExecutor
import torch.distributed as dist

def collect(rows):
    dist.all_gather_object(rows, 1){code}

class Collector(threading.Thread):
    def run(self):
        collect([])

def main(rows, pool: ThreadPoolExecutor):
    dist.barrier()
    {start}
    dist.barrier()
""",
            *THREADS,
        )


def test_a_thread_of_one_rank_that_is_waited_for() -> None:
    """What it does is matched like any call: the other ranks are not in it."""
    assert agree(
        """
        import threading
        import torch.distributed as dist

        def collect(rows):
            dist.all_gather_object(rows, 1)  # SPG104

        def main(rows):
            if dist.get_rank() == 0:
                thread = threading.Thread(target=collect, args=(rows,))
                thread.start()
                thread.join()
        """,
        *THREADS,
    )


def test_local_work_and_own_groups_are_silent() -> None:
    """Threads may do local work, and communicate on a group of their own."""
    assert agree(
        """
        import asyncio
        from concurrent.futures import ThreadPoolExecutor
        import torch.distributed as dist

        def write(rows):
            print(rows)

        async def awaited(x):
            await asyncio.to_thread(dist.all_reduce, x)
            dist.barrier()

        def background(rows, group):
            dist.all_gather_object(rows, 1, group=group)

        def main(rows):
            own = dist.new_group(backend="gloo")
            dist.all_gather_object(rows, 1)
            pool = ThreadPoolExecutor()
            pool.submit(write, rows)
            pool.submit(background, rows, own)
        """,
        *THREADS,
    )


def test_generators_that_a_thread_drains() -> None:
    """A generator that communicates, handed to a function of another package that a thread runs."""
    for start, code in (
        ("threading.Thread(target=self.client.stream, args=(self.weights(),)).start()", "  # SPG108"),
        ("self.pool.submit(self.client.stream, self.weights())", "  # SPG108"),
        ("threading.Thread(target=self.client.stream, args=(list(self.names()),)).start()", ""),
        ("self.client.stream(self.weights())", ""),
    ):
        assert agree(
            f"""
            import threading
            from concurrent.futures import ThreadPoolExecutor
            import torch.distributed as dist

            class Sender:
                def __init__(self, client, model):
                    self.client, self.model = client, model
                    self.pool = ThreadPoolExecutor(1)

                def names(self):
                    for name, param in self.model.named_parameters():
                        yield name

                def weights(self):
                    for name, param in self.model.named_parameters():
                        whole = param.new_empty(param.numel() * 4)
                        dist.all_gather_into_tensor(whole, param){code}
                        yield name, whole

                def send(self, total):
                    {start}
                    dist.all_reduce(total)
            """,
            "SPG108",
        )


SAVES = """
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import async_save
"""


def test_beside_the_thread_of_a_save() -> None:
    """A barrier, or a collective of objects, while a save on the default group is under way."""
    assert agree(
        SAVES
        + """
class Manager:
    def __init__(self):
        self.pending = None

    def save(self, state, step):
        if self.pending is not None:
            self.pending.result()
        self.pending = dcp.async_save(state, checkpoint_id=f"step_{step}")
        dist.barrier()  # SPG108

def train(state, steps):
    manager = Manager()
    for step in range(steps):
        manager.save(state, step)

def told(state, names):
    future = async_save(state, checkpoint_id="last")
    dist.broadcast_object_list(names, src=0)  # SPG108
    future.result()
""",
        "SPG108",
    )


def test_a_group_or_a_moment_of_its_own() -> None:
    """A group for the save, a process for it, a wait before the barrier, tensors, the next round."""
    assert agree(
        SAVES
        + """
def grouped(state, group):
    future = async_save(state, checkpoint_id="last", process_group=group)
    dist.barrier()
    future.result()

def apart(state, kind):
    future = async_save(state, checkpoint_id="last", async_checkpointer_type=kind)
    dist.barrier()
    future.result()

def waited(state):
    async_save(state, checkpoint_id="last").result()
    dist.barrier()

def tensors(state, loss):
    future = async_save(state, checkpoint_id="last")
    dist.all_reduce(loss)
    future.result()

def rounds(state, steps):
    future = None
    for step in range(steps):
        if future is not None:
            future.result()
        dist.barrier()
        future = async_save(state, checkpoint_id="last")
    if future is not None:
        future.result()

def helper(future):
    future.result()

def waits_in_a_function(state):
    future = async_save(state, checkpoint_id="last")
    helper(future)
    dist.barrier()
""",
        "SPG108",
    )


def test_tensors_in_the_memory_of_the_cpu() -> None:
    """They take the backend of the save, in this round or in the next one; those of a device do not."""
    assert agree(
        SAVES
        + """
import torch

class Stop:
    def __init__(self):
        self.seen = False

    def __call__(self):
        flag = torch.tensor([int(self.seen)])
        dist.all_reduce(flag, op=dist.ReduceOp.MAX)  # SPG108
        return bool(flag.item())

class Saver:
    def __init__(self, group=None):
        self.pending = None
        self.group = group

    def save(self, state):
        self.wait()
        self.pending = dcp.async_save(state, process_group=self.group)

    def wait(self):
        if self.pending is not None:
            self.pending.result()
            self.pending = None

def train(state, steps):
    saver = Saver()
    stop = Stop()
    for step in range(steps):
        if stop():
            break
        saver.save(state)
    saver.wait()
    dist.barrier()

def on_a_device(state, steps):
    saver = Saver()
    for step in range(steps):
        flag = torch.tensor([step], device="cuda")
        dist.all_reduce(flag)
        other = torch.tensor([step]).cuda()
        dist.all_reduce(other)
        saver.save(state)
    saver.wait()

def grouped(state, steps):
    saver = Saver(dist.new_group(backend="gloo"))
    for step in range(steps):
        dist.broadcast(torch.zeros(1), src=0)
        saver.save(state)
    saver.wait()

def written_into_the_call(state):
    future = async_save(state)
    dist.broadcast(torch.zeros(1), src=0)  # SPG108
    future.result()
""",
        "SPG108",
    )


def test_a_future_that_may_not_be_there() -> None:
    """A test whether there is a save under way, around the wait for it: nothing is under way behind it."""
    for test in (
        "future is not None",
        "future",
        "not future",
        "future is None",
        "future is not None and not future.done()",
        "step % 100 == 0",
        "future is not None and future.done()",
    ):
        waits = "future.result()"
        turned = test in ("not future", "future is None")
        report = "  # SPG108" if test.startswith("step") or test.endswith("and future.done()") else ""
        assert agree(
            SAVES
            + f"""
def train(state, steps):
    future = None
    for step in range(steps):
        if step % 10:
            continue
        if {test}:
            {"pass" if turned else waits}
        else:
            {waits if turned else "pass"}
        future = async_save(state)
    if {test}:
        {"pass" if turned else waits}
    else:
        {waits if turned else "pass"}
    dist.barrier(){report}
""",
            "SPG108",
        )
