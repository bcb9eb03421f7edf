"""SPG603 along the trace: handles and buffers through calls, attributes, lists, and rank by rank."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_waits_on_some_ranks() -> None:
    """In a branch, in a loop there, behind a helper's list, and past an early return."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def start_all(grads):
            return [dist.all_reduce(g, async_op=True) for g in grads]

        def helper_and_loop():
            rank = dist.get_rank()
            grads = [torch.full((8,), float(rank + k)) for k in range(3)]
            pending = start_all(grads)
            if rank == 0:
                for job in pending:
                    job.wait()  # SPG603
            dist.barrier()

        def read_by_all(x):
            work = dist.all_reduce(x, async_op=True)
            if dist.get_rank() == 0:
                work.wait()  # SPG603
            return x.sum()  # SPG603

        def past_a_return(x):
            work = dist.all_reduce(x, async_op=True)
            if dist.get_rank() != 0:
                return None
            work.wait()  # SPG603
            return x.sum()

        class Reducer:
            def launch(self, x):
                self.work = dist.all_reduce(x, async_op=True)

            def finish(self):
                if dist.get_rank() == 0:
                    self.work.wait()  # SPG603

        def use(x):
            reducer = Reducer()
            reducer.launch(x)
            reducer.finish()
        """,
        "SPG603",
    )


def test_buffers_of_objects_and_helpers() -> None:
    """Started in one method, touched by the caller or another method, waited for in a third."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        class Bucket:
            def __init__(self, n):
                self.flat = torch.ones(n)
                self.work = None

            def launch(self):
                self.work = dist.all_reduce(self.flat, async_op=True)

            def finish(self):
                self.work.wait()
                return self.flat

            def scale(self, factor):
                self.flat.mul_(factor)  # SPG603

        def by_the_caller(n):
            bucket = Bucket(n)
            bucket.launch()
            bucket.flat.mul_(0.5)  # SPG603
            return bucket.finish()

        def by_a_method(n):
            bucket = Bucket(n)
            bucket.launch()
            bucket.scale(0.5)
            return bucket.finish()

        def begin(x):
            return dist.all_reduce(x, async_op=True)

        def from_a_helper(x):
            work = begin(x)
            total = x.sum()  # SPG603
            work.wait()
            return total

        class Link:
            def post(self, buffer, peer):
                self.buffer = buffer
                self.request = dist.irecv(self.buffer, src=peer)

            def send(self, buffer, peer):
                self.out = buffer
                self.request = dist.isend(self.out, dst=peer)

        def received(buffer, peer):
            link = Link()
            link.post(buffer, peer)
            first = link.buffer[0] + 1  # SPG603
            link.request.wait()
            return first

        def sent(buffer, peer):
            link = Link()
            link.send(buffer, peer)
            link.out[0] = 3  # SPG603
            link.request.wait()
        """,
        "SPG603",
    )


def test_lists_of_buffers() -> None:
    """Output lists, inputs of a gather, and gradients on which a loop has begun operations."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def outputs(x, world):
            outs = [torch.empty_like(x) for _ in range(world)]
            work = dist.all_gather(outs, x, async_op=True)
            joined = torch.cat(outs)  # SPG603
            work.wait()
            return joined

        def inputs(x, world):
            outs = [torch.empty_like(x) for _ in range(world)]
            work = dist.all_gather(outs, x, async_op=True)
            x.zero_()  # SPG603
            work.wait()
            return outs

        def appended(grads):
            works = []
            for grad in grads:
                works.append(dist.all_reduce(grad, async_op=True))
            total = torch.stack(grads)  # SPG603
            for work in works:
                work.wait()
            return total

        def comprehended(grads):
            works = [dist.all_reduce(grad, async_op=True) for grad in grads]
            for grad in grads:
                grad.div_(2)  # SPG603
            for work in works:
                work.wait()
        """,
        "SPG603",
    )


def test_no_handle_without_async_op() -> None:
    """A wait for what ``all_reduce`` gives when it has already ended: None."""
    assert agree(
        """
        import torch.distributed as dist

        def ended(x):
            work = dist.all_reduce(x)
            work.wait()  # SPG603

        def at_once(x):
            dist.broadcast(x, src=0).wait()  # SPG603

        def positional(x, group):
            work = dist.all_reduce(x, dist.ReduceOp.SUM, group, True)
            work.wait()

        def switched(x, overlap):
            work = dist.all_reduce(x, async_op=overlap)
            work.wait()

        def by_group(group, x):
            group.allreduce([x]).wait()
        """,
        "SPG603",
    )


def test_waited_for_by_all() -> None:
    """Every rank waits, in other words or places; uses after the wait, on views and metadata, and of other buffers."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        class Bucket:
            def __init__(self, n):
                self.flat = torch.ones(n)
                self.other = torch.ones(n)

            def launch(self):
                self.work = dist.all_reduce(self.flat, async_op=True)

            def finish(self):
                self.work.wait()
                return self.flat

        def after(n):
            bucket = Bucket(n)
            bucket.launch()
            bucket.other.mul_(2)
            print(bucket.flat.shape, bucket.flat.numel())
            flat = bucket.finish()
            flat.mul_(0.5)
            bucket.flat.add_(1)

        def both_arms(x):
            work = dist.all_reduce(x, async_op=True)
            if dist.get_rank() == 0:
                work.wait()
                print(x.sum())
            else:
                work.wait()
            return x.sum()

        def roles(x, peer):
            if dist.get_rank() == 0:
                work = dist.isend(x, dst=peer)
            else:
                work = dist.irecv(x, src=peer)
            work.wait()
            return x.sum()

        def handed_on(x):
            work = dist.all_reduce(x, async_op=True)
            if dist.get_rank() == 0:
                work.wait()
            return work

        def twice(x):
            work = dist.all_reduce(x, async_op=True)
            work.wait()
            if dist.get_rank() == 0:
                work.wait()
            return x.sum()

        def pipelined(buckets):
            before = None
            for bucket in buckets:
                if before is not None:
                    before[0].wait()
                    before[1].div_(2)
                before = dist.all_reduce(bucket, async_op=True), bucket
            if before is not None:
                before[0].wait()
                before[1].div_(2)

        def each_after_its_wait(grads):
            works = [dist.all_reduce(grad, async_op=True) for grad in grads]
            for work, grad in zip(works, grads):
                work.wait()
                grad.div_(2)

        def only_sizes(grads):
            works = [dist.all_reduce(grad, async_op=True) for grad in grads]
            total = 0
            for grad in grads:
                total += grad.numel()
            for work in works:
                work.wait()
            return total, torch.stack(grads)

        def device(x):
            dist.all_reduce(x, async_op=True).wait()
            return x + 1

        def handed_over(x, world, overlap):
            outs = [torch.empty_like(x) for _ in range(world)]
            work = dist.all_gather(outs, x, async_op=True)
            return overlap.apply(outs, work)

        def sometimes(x, parallel, rounds):
            work = dist.all_reduce(x, async_op=False)
            for _ in range(rounds):
                if parallel:
                    work = dist.all_reduce(x, async_op=True)
                print(rounds)
                if parallel:
                    work.wait()

        def unknown_wait(x, pool):
            work = dist.all_reduce(x, async_op=True)
            pool.keep(work)
            pool.wait()
            return x + 1
        """,
        "SPG603",
    )


def test_known_miss_views() -> None:
    """A buffer that is touched through a view is not followed."""
    assert agree(
        """
        import torch.distributed as dist

        class Flat:
            def launch(self, flat):
                self.view = flat[:8]
                self.work = dist.all_reduce(flat, async_op=True)

        def through_a_view(flat):
            keeper = Flat()
            keeper.launch(flat)
            keeper.view.zero_()
            keeper.work.wait()
        """,
        "SPG603",
    )


def test_buffer_of_the_round_before() -> None:
    """A buffer is written anew in the next round, before the wait for what was begun in the last one."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        class Outbox:
            def __init__(self, shape, peer):
                self.staging = torch.empty(shape)
                self.peer = peer
                self.pending = None

            def post(self, x):
                self.staging.copy_(x)  # SPG603
                self.flush()
                self.pending = dist.isend(self.staging, dst=self.peer)

            def flush(self):
                if self.pending is not None:
                    self.pending.wait()
                    self.pending = None

        def fields(items, peer):
            box = Outbox((4,), peer)
            for item in items:
                box.post(item)
            box.flush()

        def names(items, peer):
            buffer = torch.empty(4)
            work = None
            for item in items:
                buffer.copy_(item)  # SPG603
                if work is not None:
                    work.wait()
                work = dist.isend(buffer, dst=peer)
            work.wait()
        """,
        "SPG603",
    )


def test_buffer_after_the_wait_of_the_round_before() -> None:
    """The wait comes first, each round has a buffer of its own, or the round ends with the wait."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        class Outbox:
            def __init__(self, shape, peer):
                self.staging = torch.empty(shape)
                self.peer = peer
                self.pending = None

            def post(self, x):
                self.flush()
                self.staging.copy_(x)
                self.pending = dist.isend(self.staging, dst=self.peer)

            def flush(self):
                if self.pending is not None:
                    self.pending.wait()
                    self.pending = None

        def fields(items, peer):
            box = Outbox((4,), peer)
            for item in items:
                box.post(item)
            box.flush()

        def names(items, peer):
            buffer = torch.empty(4)
            work = None
            for item in items:
                if work is not None:
                    work.wait()
                buffer.copy_(item)
                work = dist.isend(buffer, dst=peer)
            work.wait()

        def flag(items, peer):
            buffer, first = torch.empty(4), True
            for item in items:
                if not first:
                    work.wait()
                first = False
                buffer.copy_(item)
                work = dist.isend(buffer, dst=peer)
            work.wait()

        def at_the_end(items, peer):
            buffer = torch.empty(4)
            for item in items:
                buffer.copy_(item)
                dist.isend(buffer, dst=peer).wait()

        def fresh(items, peer):
            work = []
            for item in items:
                buffer = item.clone()
                buffer.add_(1)
                work.append(dist.isend(buffer, dst=peer))
            for one in work:
                one.wait()
        """,
        "SPG603",
    )
