"""SPG203: batches skipped after running out of memory."""

from __future__ import annotations

from tests.lint.rules.marked import agree

HANDLERS = ("SPG202", "SPG203", "SPG206")


def test_handlers_about_memory() -> None:
    """By class, by message, around a hidden collective."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel as DDP

        def by_class(model, loader):
            model = DDP(model)
            dist.barrier()
            for batch in loader:
                try:
                    loss = model(batch).mean()
                    loss.backward()
                except torch.cuda.OutOfMemoryError:
                    torch.cuda.empty_cache()
                    continue  # SPG203

        def by_generic_class(x, loader):
            for batch in loader:
                try:
                    dist.all_reduce(x * batch)
                except torch.OutOfMemoryError:  # SPG203
                    print("skipping")

        def by_message(model, loader):
            for batch in loader:
                try:
                    loss = model(batch)
                    dist.all_reduce(loss)
                except RuntimeError as error:
                    if "out of memory" in str(error):
                        torch.cuda.empty_cache()
                        continue  # SPG203
                    raise
        """,
        *HANDLERS,
    )


def test_right_handlers_are_silent() -> None:
    """The forward alone in the body and a shared verdict, or the error raised again."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def agreed(forward, loader):
            for batch in loader:
                full = torch.zeros(1)
                try:
                    loss = forward(batch)
                except torch.cuda.OutOfMemoryError:
                    full.fill_(1)
                    loss = torch.zeros(())
                dist.all_reduce(full, op=dist.ReduceOp.MAX)
                if full.item():
                    continue
                dist.all_reduce(loss)

        def raised(model, batch):
            try:
                dist.all_reduce(model(batch))
            except torch.cuda.OutOfMemoryError as error:
                raise RuntimeError(f"batch of {len(batch)} does not fit") from error
        """,
        *HANDLERS,
    )


def test_a_repeated_step() -> None:
    """A handler that makes the same calls again repeats those that were done; before the first one it repeats none."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel as DDP

        def repeated(net, batch):
            model = DDP(net)
            try:
                loss = model(batch).mean()
                loss.backward()
            except torch.cuda.OutOfMemoryError:  # SPG203
                torch.cuda.empty_cache()
                loss = model(batch[:1]).mean()
                loss.backward()

        def reduced_twice(step, batch):
            try:
                first = step(batch)
                dist.all_reduce(first)
                second = step(first)
                dist.all_reduce(second)
            except RuntimeError as error:  # SPG203
                if "out of memory" not in str(error):
                    raise
                first = step(batch[:1])
                dist.all_reduce(first)
                second = step(first)
                dist.all_reduce(second)

        def retried(step, batch):
            try:
                dist.all_reduce(step(batch))
            except torch.cuda.OutOfMemoryError:
                torch.cuda.empty_cache()
                dist.all_reduce(step(batch[:1]))
        """,
        *HANDLERS,
    )


def test_memory_probed_before_the_model_is_wrapped() -> None:
    """A backward pass of a model that is wrapped only later exchanges nothing; of one wrapped before, it does."""
    assert agree(
        """
        import torch
        from torch.nn.parallel import DistributedDataParallel as DDP

        def probe(net, batch, size):
            while size > 0:
                try:
                    net(batch[:size]).sum().backward()
                    return size
                except torch.cuda.OutOfMemoryError:
                    size //= 2
            return 0

        def train(net, batch):
            net = net.cuda()
            size = probe(net, batch, 64)
            model = DDP(module=net)
            return model, size
        """,
        "SPG203",
    )
    assert agree(
        """
        import torch
        from torch.nn.parallel import DistributedDataParallel as DDP

        def probe(net, batch, size):
            while size > 0:
                try:
                    net(batch[:size]).sum().backward()
                    return size
                except torch.cuda.OutOfMemoryError:  # SPG203
                    size //= 2
            return 0

        def train(net, batch):
            model = DDP(net)
            return probe(model, batch, 64)
        """,
        "SPG203",
    )
