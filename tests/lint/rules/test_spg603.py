"""SPG603: asynchronous operations that nothing waits for."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_lost_handles() -> None:
    """Dropped, overwritten, never read, kept in a list that nothing reads."""
    assert agree(
        """
        import torch.distributed as dist

        def dropped(x):
            dist.all_reduce(x, async_op=True)  # SPG603
            return x

        def overwritten(a, b):
            work = dist.broadcast(a, src=0, async_op=True)  # SPG603
            work = dist.broadcast(b, src=0, async_op=True)
            work.wait()

        def unread(mine, theirs, peer):
            send = dist.isend(mine, dst=peer)
            receive = dist.irecv(theirs, src=peer)  # SPG603
            send.wait()

        def listed(xs):
            works = []
            for x in xs:
                works.append(dist.all_reduce(x, async_op=True))  # SPG603
            return xs

        def unpacked(mine, theirs, peer):
            send, receive = dist.isend(mine, dst=peer), dist.irecv(theirs, src=peer)  # SPG603
            receive.wait()
        """,
        "SPG603",
    )


def test_buffers_used_too_early() -> None:
    """A buffer that is written while it is sent, or read before it has been received."""
    assert agree(
        """
        import torch.distributed as dist

        def written(buffer, peer):
            request = dist.isend(buffer, dst=peer)
            buffer[0] = 1  # SPG603
            request.wait()

        def in_place(buffer, peer):
            request = dist.isend(buffer, dst=peer)
            buffer.zero_()  # SPG603
            request.wait()

        def read(buffer, peer):
            request = dist.irecv(buffer, src=peer)
            total = buffer.sum()  # SPG603
            request.wait()
            return total

        def reduced(x):
            work = dist.all_reduce(x, async_op=True)
            y = x / 2  # SPG603
            work.wait()
            return y
        """,
        "SPG603",
    )


def test_waited_handles_are_silent() -> None:
    """Waited for here, in a loop, by the caller, or by an object; the buffer only asked for its shape."""
    assert agree(
        """
        import torch.distributed as dist

        def waited(x, other):
            work = dist.all_reduce(x, async_op=True)
            y = other * 2
            print(x.shape, x.numel())
            work.wait()
            return x + y

        def at_once(x):
            dist.all_reduce(x, async_op=True).wait()

        def in_a_loop(xs):
            works = [dist.all_reduce(x, async_op=True) for x in xs]
            for work in works:
                work.wait()

        def returned(x):
            return dist.all_reduce(x, async_op=True)

        class Reducer:
            def start(self, x):
                self.work = dist.all_reduce(x, async_op=True)

        def rebound(x, peer):
            request = dist.isend(x, dst=peer)
            x = x + 1
            request.wait()
            return x

        def batched(ops):
            for request in dist.batch_isend_irecv(ops):
                request.wait()

        def synchronous(x):
            dist.all_reduce(x, async_op=False)

        def by_switch(x, overlap):
            work = dist.all_reduce(x, async_op=overlap)
            if work is not None:
                work.wait()
        """,
        "SPG603",
    )


def test_known_miss_switches() -> None:
    """A handle that exists only where a variable says so is left alone."""
    assert agree(
        """
        import torch.distributed as dist

        def by_switch(x, overlap):
            dist.all_reduce(x, async_op=overlap)
            return x
        """,
        "SPG603",
    )


def test_other_names() -> None:
    """A buffer under another name."""
    assert agree(
        """
        import torch.distributed as dist

        def aliased(buffer, peer):
            same = buffer
            request = dist.isend(buffer, dst=peer)
            same[0] = 1  # SPG603
            request.wait()
        """,
        "SPG603",
    )


def test_handles_handed_on_and_dropped() -> None:
    """A function that returns its handle, alone or in a tuple, and callers that let it go; others wait for it."""
    assert agree(
        """
        import torch.distributed as dist

        def start(x, group=None):
            work = dist.all_reduce(x, group=group, async_op=True)
            return x, work

        def begin(x):
            return dist.all_reduce(x, async_op=True)

        def finished(x):
            work = dist.all_reduce(x, async_op=True)
            work.wait()
            return x, work

        class Layer:
            def gather(self, out, x):
                work = dist.all_gather_into_tensor(out, x, async_op=True)
                return out, work

            def forward(self, out, x):
                full, _ = self.gather(out, x)  # SPG603
                return full

            def right(self, out, x):
                full, work = self.gather(out, x)
                work.wait()
                return full

        def callers(x):
            y, _ = start(x)  # SPG603
            begin(x)  # SPG603
            z, handle = start(x)
            handle.wait()
            kept = begin(x)
            kept.wait()
            a, _ = finished(x)
            return y, z, a
        """,
        "SPG603",
    )


def test_last_asynchronous_save() -> None:
    """The future of the last save is asked for by nobody before the group is destroyed; a dropped one never."""
    assert agree(
        """
        import torch.distributed as dist
        from torch.distributed import checkpoint
        from torch.distributed.checkpoint.state_dict_saver import async_save

        def local(steps, state):
            dist.init_process_group()
            future = None
            for step in range(steps):
                if future is not None:
                    future.result()
                future = async_save(state, checkpoint_id=f"out/{step}")  # SPG603
            dist.barrier()
            dist.destroy_process_group()

        class Saver:
            def __init__(self):
                self.running = None

            def finalize(self):
                if self.running is not None:
                    self.running.result()

            def save(self, state, step):
                self.finalize()
                self.running = checkpoint.async_save(state, checkpoint_id=f"out/{step}")  # SPG603

        def held(steps, state):
            dist.init_process_group()
            saver = Saver()
            for step in range(steps):
                saver.save(state, step)
            dist.destroy_process_group()

        def dropped(state):
            async_save(state, checkpoint_id="out")  # SPG603
        """,
        "SPG603",
    )


def test_last_asynchronous_save_is_asked_for() -> None:
    """A result, a wait of the saver's own, futures in a list; a save that another function ends."""
    assert agree(
        """
        import torch.distributed as dist
        import torch.distributed.checkpoint as dcp

        class Saver:
            def __init__(self):
                self.running = None

            def finalize(self):
                if self.running is not None:
                    self.running.result()

            def save(self, state, step):
                self.finalize()
                self.running = dcp.async_save(state, checkpoint_id=f"out/{step}")

        def held(steps, state):
            dist.init_process_group()
            saver = Saver()
            for step in range(steps):
                saver.save(state, step)
            saver.finalize()
            dist.destroy_process_group()

        def local(steps, state):
            dist.init_process_group()
            future = None
            for step in range(steps):
                if future is not None:
                    future.result()
                future = dcp.async_save(state, checkpoint_id=f"out/{step}")
            if future:
                future.result()
            dist.destroy_process_group()

        def many(steps, state):
            dist.init_process_group()
            futures = [dcp.async_save(state, checkpoint_id=f"out/{step}") for step in range(steps)]
            for future in futures:
                future.result()
            dist.destroy_process_group()

        def each_in_turn(steps, state):
            for step in range(steps):
                future = dcp.async_save(state, checkpoint_id=f"out/{step}")
                future.result()
            dist.destroy_process_group()

        def started(state):
            return dcp.async_save(state, checkpoint_id="out")

        def either(state, wait):
            running = None
            if wait:
                running = dcp.save(state, checkpoint_id="out")
            else:
                running = dcp.async_save(state, checkpoint_id="out")
            return running

        def at_once(state):
            either(state, wait=True)
        """,
        "SPG603",
    )


def test_only_the_last_round_is_waited_for() -> None:
    """A name that each round binds to a new handle, and that is waited for behind the loop."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def pull(slots):
            request = None
            for peer, slot in enumerate(slots, start=1):
                request = dist.irecv(slot, src=peer)  # SPG603
            if request is not None:
                request.wait()
            return torch.stack(slots)

        def reduce(parts, skip):
            work = None
            for part in parts:
                if part is not skip:
                    work = dist.all_reduce(part, async_op=True)  # SPG603
            work.wait()

        def batches(groups):
            for ops in groups:
                requests = dist.batch_isend_irecv(ops)  # SPG603
            for request in requests:
                request.wait()
        """,
        "SPG603",
    )


def test_each_round_is_waited_for() -> None:
    """Waited for at once, before the next one, through a list, or in a loop that ends with its first operation."""
    assert agree(
        """
        import torch.distributed as dist

        def at_once(slots):
            for peer, slot in enumerate(slots):
                request = dist.irecv(slot, src=peer)
                request.wait()

        def before_the_next(slots):
            request = None
            for peer, slot in enumerate(slots):
                if request is not None:
                    request.wait()
                request = dist.irecv(slot, src=peer)
            request.wait()

        def kept(slots):
            requests = []
            for peer, slot in enumerate(slots):
                request = dist.irecv(slot, src=peer)
                requests.append(request)
            for request in requests:
                request.wait()

        def first(slots, peers):
            for peer, slot in zip(peers, slots):
                if peer is not None:
                    request = dist.irecv(slot, src=peer)
                    break
            request.wait()
        """,
        "SPG603",
    )


def test_a_function_of_the_same_scope_waits_in_each_round() -> None:
    """A loop whose rounds call an inner function that waits for the last round's handle; one that calls it behind."""
    assert agree(
        """
        import torch.distributed as dist

        def in_each_round(params, buffers):
            handle = None
            pending = None

            def finish():
                if pending is not None:
                    handle.wait()
                    pending.copy_(buffers[0])

            for p in params:
                finish()
                handle = dist.all_gather(buffers, p, async_op=True)
                pending = p
            finish()

        def through_another(params, buffers):
            handle = None
            end = lambda: handle.wait()

            def finish():
                if handle is not None:
                    end()

            for p in params:
                finish()
                handle = dist.all_gather(buffers, p, async_op=True)
            finish()

        def behind_the_loop(params, buffers):
            handle = None

            def finish():
                handle.wait()

            for p in params:
                handle = dist.all_gather(buffers, p, async_op=True)  # SPG603
            finish()
        """,
        "SPG603",
    )
