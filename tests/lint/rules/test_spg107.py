"""SPG107: roots and operators that differ between ranks."""

from __future__ import annotations

from tests.lint.rules.marked import agree

ROOTS = ("SPG101", "SPG103", "SPG107")


def test_root_or_operator_by_rank() -> None:
    """A rank that names itself, a root computed from the rank, an operator chosen by it."""
    assert agree(
        """
        import random
        import torch.distributed as dist

        def itself(x):
            dist.broadcast(x, src=dist.get_rank())  # SPG107

        def computed(x):
            rank = dist.get_rank()
            dist.reduce(x, dst=rank // 2)  # SPG107

        def chosen(x):
            root = 0 if dist.get_rank() < 2 else 2
            dist.gather(x, dst=root)  # SPG107

        def operator(x):
            op = dist.ReduceOp.MAX if dist.get_rank() else dist.ReduceOp.MIN
            dist.all_reduce(x, op=op)  # SPG107

        def drawn(x):
            dist.broadcast(x, src=random.randrange(dist.get_world_size()))  # SPG107

        def helper(x, root):
            dist.reduce(x, dst=root)  # SPG107

        def caller(x):
            helper(x, dist.get_rank())
        """,
        *ROOTS,
    )


def test_shared_roots_are_silent() -> None:
    """Constants, loop counters, agreed winners, roots of a sub-group, and values only one rank uses."""
    assert agree(
        """
        import torch.distributed as dist

        def constant(x):
            dist.broadcast(x, 0)

        def in_turn(xs):
            for owner in range(dist.get_world_size()):
                dist.broadcast(xs[owner], src=owner)

        def winner(x, score):
            scores = [None] * dist.get_world_size()
            dist.all_gather_object(scores, score)
            dist.broadcast(x, src=scores.index(max(scores)))

        def list_of_one(x):
            dist.gather(x, [x] if dist.get_rank() == 0 else None, dst=0)

        def within(x, group):
            leader = dist.get_global_rank(group, 0)
            dist.broadcast(x, src=leader, group=group)

        def by_role(x, sends, peer):
            if sends:
                dist.broadcast(x, src=dist.get_rank())
            else:
                dist.broadcast(x, src=peer)

        def guarded(x):
            rank = dist.get_rank()
            if rank == 3:
                dist.broadcast(x, src=rank)  # SPG101
        """,
        *ROOTS,
    )


def test_tensors_of_other_sizes() -> None:
    """Arms that write down other sizes, sizes from the rank, and elements of own data that meet a test."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def by_arm():
            if dist.get_rank() == 0:
                x = torch.zeros(3, 4)
            else:
                x = torch.zeros(1)
            dist.broadcast(x, 0)  # SPG107

        def by_rank():
            dist.all_reduce(torch.ones(dist.get_rank() + 1))  # SPG107

        def kept(boxes, scores):
            mask = scores > 0.5
            return boxes[mask], scores[mask]

        def by_data(model, loader):
            for images in loader:
                boxes, scores = model(images)
                chosen, _ = kept(boxes, scores)
                out = [torch.zeros_like(chosen) for _ in range(dist.get_world_size())]
                dist.all_gather(out, chosen.contiguous())  # SPG107
                dist.all_reduce(torch.nonzero(scores))  # SPG107
                dist.all_reduce(scores.unique())  # SPG107
        """,
        "SPG107",
    )


def test_lengths_found_in_own_data() -> None:
    """Tensors cut or made to the longest sample, or to a count, of this rank's own batch."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def everyone(x):
            out = [torch.empty_like(x) for _ in range(dist.get_world_size())]
            dist.all_gather(out, x)  # SPG107
            return torch.cat(out)

        def cut(loader):
            for ids, valid in loader:
                longest = int(valid.max())
                everyone(ids[:, :longest].contiguous())

        def by_mask(loader):
            for batch in loader:
                longest = batch["mask"].sum(1).max().item()
                rows = batch["ids"][..., :longest]
                dist.all_reduce(rows)  # SPG107

        def made(loader):
            for batch in loader:
                longest = max(len(text) for text in batch["texts"])
                full = torch.zeros(4, longest + 1)
                dist.all_reduce(full)  # SPG107

        def first_rows(loader):
            for rows, keep in loader:
                chosen = rows[: int(keep.sum())]
                dist.broadcast(chosen, 0)  # SPG107
        """,
        "SPG107",
    )


def test_lengths_that_ranks_share() -> None:
    """A length reduced before, one from the configuration, padding to it, and a number that is no length."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        import torch.nn.functional as F

        def everyone(x):
            out = [torch.empty_like(x) for _ in range(dist.get_world_size())]
            dist.all_gather(out, x)
            return torch.cat(out)

        def reduced(loader):
            for ids, valid in loader:
                longest = valid.max()
                dist.all_reduce(longest, op=dist.ReduceOp.MAX)
                everyone(ids[:, : int(longest)].contiguous())

        def configured(loader, limit):
            for ids, valid in loader:
                everyone(ids[:, :limit])
                everyone(ids[:, : max(limit, 8)])

        def padded(loader, limit):
            for ids, valid in loader:
                cut = ids[:, : int(valid.max())]
                everyone(F.pad(cut, (0, limit - cut.shape[1])))

        def values(loader):
            for ids, valid in loader:
                dist.all_reduce(torch.full((4,), valid.max().item()))
                dist.all_reduce(torch.tensor([int(valid.sum())]))
                dist.all_reduce(valid[:, 0].max())

        def within(loader, group):
            for ids, valid in loader:
                dist.all_reduce(ids[:, : int(valid.max())], group=group)
        """,
        "SPG107",
    )


def test_tensors_of_one_size() -> None:
    """Equal sizes in other words, padded tensors, totals of chosen elements, and masks that all ranks share."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def by_arm(width):
            if dist.get_rank() == 0:
                x = torch.ones(2, 6)
                y = torch.ones(width)
            else:
                x = torch.zeros(12)
                y = torch.empty(width)
            dist.broadcast(x, 0)
            dist.broadcast(y, 0)

        def padded(model, loader):
            for images in loader:
                scores = model(images)
                rows = scores[scores > 0.5]
                size = torch.tensor([len(rows)])
                sizes = [torch.zeros_like(size) for _ in range(dist.get_world_size())]
                dist.all_gather(sizes, size)
                full = rows.new_zeros(int(torch.stack(sizes).max()))
                full[: len(rows)] = rows
                dist.all_gather([torch.zeros_like(full) for _ in sizes], full)

        def totals(model, loader):
            for images in loader:
                scores = model(images)
                dist.all_reduce(scores[scores > 0.5].sum())
                dist.all_reduce((scores > 0.5).float())

        def shared(weights, threshold):
            dist.all_reduce(weights[weights > threshold])
        """,
        "SPG107",
    )


def test_roots_within_a_group() -> None:
    """A rank within the group, or of another group, where the global rank of a member is asked for."""
    assert agree(
        """
        import torch.distributed as dist

        def on_leader(group, leader, fn):
            result = [None]
            if dist.get_rank(group) == leader:
                result[0] = fn()
            dist.broadcast_object_list(result, src=leader, group=group)  # SPG107

        def halves(x):
            first, second = dist.new_group([0, 1]), dist.new_group([2, 3])
            mine = first if dist.get_rank() < 2 else second
            dist.broadcast(x, src=0, group=mine)  # SPG107

        def translated(group, leader, fn):
            result = [None]
            if dist.get_rank(group) == leader:
                result[0] = fn()
            dist.broadcast_object_list(result, src=dist.get_global_rank(group, leader), group=group)

        def own_halves(x):
            first, second = dist.new_group([0, 1]), dist.new_group([2, 3])
            if dist.get_rank() < 2:
                dist.broadcast(x, src=0, group=first)
            else:
                dist.broadcast(x, src=2, group=second)

        def everyone(leader, x):
            if dist.get_rank() == leader:
                x.fill_(1)
            dist.broadcast(x, src=leader)
        """,
        "SPG107",
    )


def test_lists_on_the_root_alone() -> None:
    """The root has no list, another rank has one, or every rank."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def on_another_rank(x):
            rank, world = dist.get_rank(), dist.get_world_size()
            outs = [torch.empty_like(x) for _ in range(world)] if rank == 1 else None
            dist.gather(x, outs, dst=0)  # SPG107

        def on_every_rank(x):
            outs = [torch.empty_like(x) for _ in range(dist.get_world_size())]
            dist.gather(x, gather_list=outs, dst=0)  # SPG107

        def nowhere(x):
            dist.gather(x, dst=0)  # SPG107

        def objects(x):
            outs = [None] * dist.get_world_size()
            dist.gather_object(x, outs)  # SPG107

        def scattered(x, world):
            parts = [torch.ones(4) for _ in range(world)] if dist.get_rank() == 0 else None
            dist.scatter(x, parts, src=1)  # SPG107
        """,
        "SPG107",
    )


def test_lists_where_they_belong() -> None:
    """The root's list in other words, lists that callers give, roles that are not known, and groups."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def chosen(x):
            rank, world = dist.get_rank(), dist.get_world_size()
            outs = [torch.empty_like(x) for _ in range(world)] if rank == 0 else None
            dist.gather(x, outs)
            dist.scatter(x, outs)

        def in_arms(x, dst=0):
            if dist.get_rank() == dst:
                outs = [torch.empty_like(x) for _ in range(dist.get_world_size())]
                dist.gather(x, outs, dst=dst)
            else:
                dist.gather(x, dst=dst)

        def given(x, outs, root):
            dist.gather(x, outs, dst=root)

        def by_role(x, collects):
            if collects:
                dist.gather(x, [x, x.clone()], dst=0)
            else:
                dist.gather(x, None, dst=0)

        def in_group(x, group):
            dist.gather(x, [x], dst=0, group=group)

        def filled(x):
            outs = []
            if dist.get_rank() == 0:
                for _ in range(dist.get_world_size()):
                    outs.append(torch.empty_like(x))
            dist.gather(x, outs, dst=0)

        class Sink:
            def flush(self, x):
                dist.gather(x, [torch.empty_like(x) for _ in range(dist.get_world_size())], dst=0)

        class FarSink(Sink):
            def flush(self, x):
                dist.gather(x, dst=0)

        def by_class(x):
            sink = Sink() if dist.get_rank() == 0 else FarSink()
            sink.flush(x)
        """,
        "SPG107",
    )


def test_one_number_as_root_of_many_groups() -> None:
    """Ranks call on the group that each belongs to: one global rank is a member of one of those groups only."""
    assert agree(
        """
        import torch.distributed as dist
        from megatron.core import mpu

        class Layout:
            def __init__(self, width):
                self.width, self.block = width, dist.get_rank() // width
                starts = range(0, dist.get_world_size(), width)
                self.group = [dist.new_group(list(range(s, s + width))) for s in starts][self.block]

            def share(self, box):
                dist.broadcast_object_list(box, src=0, group=self.group)  # SPG107
                dist.broadcast_object_list(box, src=self.block * self.width, group=self.group)
                dist.broadcast_object_list(box, group_src=0, group=self.group)
                dist.broadcast_object_list(box, src=dist.get_global_rank(self.group, 0), group=self.group)

        def own(x, width):
            mine, every = dist.new_subgroups(width)
            dist.reduce(x, dst=0, group=mine)  # SPG107
            dist.broadcast(x, src=0, group=mpu.get_tensor_model_parallel_group())  # SPG107
            dist.broadcast(x, src=mpu.get_tensor_model_parallel_src_rank(), group=mpu.get_tensor_model_parallel_group())

        def one_group(x, given):
            first = dist.new_group([0, 1])
            mine = first if dist.get_rank() < 2 else None
            if mine is not None:
                dist.broadcast(x, src=0, group=mine)
            dist.broadcast(x, src=0)
            dist.broadcast(x, src=0, group=dist.group.WORLD)
            dist.broadcast(x, src=0, group=given)
        """,
        "SPG107",
    )


def test_lists_behind_an_arm_that_has_left() -> None:
    """Who comes to a call behind ``if rank == dst: ... return`` is another rank; in a loop and a method, too."""
    assert agree(
        """
        import torch.distributed as dist

        def gather(data, dst=0):
            rank = dist.get_rank()
            if rank == dst:
                outs = [None for _ in range(dist.get_world_size())]
                dist.gather_object(data, outs, dst=dst)
                return outs
            dist.gather_object(data, None, dst=dst)
            return []

        def others_leave(data):
            if dist.get_rank() != 0:
                dist.gather_object(data, dst=0)
                return None
            outs = [None] * dist.get_world_size()
            dist.gather_object(data, outs, dst=0)
            return outs

        def in_rounds(items):
            for item in items:
                if dist.get_rank() == 0:
                    dist.gather_object(item, [None] * dist.get_world_size(), dst=0)
                    continue
                dist.gather_object(item, dst=0)

        def of_another_rank(data):
            if dist.get_rank() == 1:
                dist.gather_object(data, [None] * dist.get_world_size(), dst=1)
                return
            dist.gather_object(data, None, dst=0)  # SPG107

        def only_looked_at(data):
            if dist.get_rank() == 0:
                print(data)
            dist.gather_object(data, None, dst=0)  # SPG107

        def main(data):
            dist.init_process_group("gloo")
            gather(data)
            others_leave(data)
        """,
        "SPG107",
    )


def test_the_worker_that_joined_last_is_one_root() -> None:
    """Horovod's ``join`` tells every worker the same one, which is a root that they share; their own ranks are none."""
    assert agree(
        """
        import horovod.torch as hvd
        from horovod.torch import join as out_of_data

        def behind_the_epoch(model):
            last = hvd.join()
            hvd.broadcast_parameters(model.state_dict(), root_rank=last)

        def on_a_device(state, device):
            return hvd.broadcast_object(state, root_rank=out_of_data(device))

        class Worker:
            def finish(self, optimizer):
                self.last = hvd.join()
                hvd.broadcast_optimizer_state(optimizer, root_rank=self.last)

        def its_own(model):
            hvd.join()
            hvd.broadcast_parameters(model.state_dict(), root_rank=hvd.rank())  # SPG107

        def one_further(model):
            last = hvd.join()
            hvd.broadcast_parameters(model.state_dict(), root_rank=last + hvd.local_rank())  # SPG107
        """,
        "SPG107",
    )
