"""SPG603: a buffer that is kept in a list, or seen in another shape, is not read; what reads it then is found."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_kept_and_viewed_buffers() -> None:
    """Appended, stored, viewed: nothing is read. Used behind that, under whatever name: too early."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def recv(n):
            out, futures = [], []
            for _ in range(n):
                buffer = torch.empty(4, 2)
                futures.append(dist.irecv(buffer, src=0))
                buffer = torch.view_as_complex(buffer)
                out.append(buffer)
            for f in futures:
                f.wait()
            return out

        def scatter(n):
            tensors, works = [], []
            for i in range(n):
                t = torch.empty(4)
                w = dist.scatter(t, None, src=i, async_op=True)
                tensors.append(t)
                works.append(w)
            for w in works:
                w.wait()
            return tensors

        class Holder:
            def start(self, t):
                work = dist.all_reduce(t, async_op=True)
                self.tensors = (t, t.view(-1))
                self.named = {"flat": t.reshape(4)}
                self.flat = t.as_strided((2, 2), (2, 1)).contiguous()
                work.wait()

        def view_read(t):
            work = dist.all_reduce(t, async_op=True)
            flat = t.view(-1)
            y = flat.sum()  # SPG603
            work.wait()
            return y

        def view_read_at_once(t):
            work = dist.all_reduce(t, async_op=True)
            y = t.view(-1).sum()  # SPG603
            work.wait()
            return y

        def complex_read(t):
            work = dist.all_reduce(t, async_op=True)
            t = torch.view_as_complex(t)
            y = t.abs()  # SPG603
            work.wait()
            return y

        def view_written(t):
            work = dist.isend(t, 1)
            flat = t.view(-1)
            flat[0] = 1  # SPG603
            work.wait()

        def other_name(t):
            work = dist.all_reduce(t, async_op=True)
            y = t
            z = y * 2  # SPG603
            work.wait()
            return z

        def printed(t):
            work = dist.all_reduce(t, async_op=True)
            out = []
            out.append(t * 2)  # SPG603
            work.wait()
            return out

        def listed(n):
            tensors, works = [], []
            for i in range(n):
                t = torch.empty(4)
                w = dist.all_reduce(t, async_op=True)
                tensors.append(t)
                works.append(w)
            y = torch.cat(tensors)  # SPG603
            for w in works:
                w.wait()
            return y

        def renamed(t):
            work = dist.all_reduce(t, async_op=True)
            t = torch.zeros(4)
            y = t + 1
            work.wait()
            return y
        """,
        "SPG603",
    )
