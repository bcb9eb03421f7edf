"""SPG107, lengths: lists of objects, rows that are exchanged, lists that the root alone gives."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_lists_of_objects_of_other_lengths() -> None:
    """Two objects on the source and a list of one elsewhere; lists that are as long everywhere are silent."""
    assert agree(
        """
        import torch.distributed as dist

        def box(rank):
            if rank == 0:
                return [{"lr": 0.1}, {"momentum": 0.9}]
            return [None]

        def by_return():
            options = box(dist.get_rank())
            dist.broadcast_object_list(options, src=0)  # SPG107

        def by_choice(a, b):
            dist.broadcast_object_list([a, b] if dist.get_rank() == 0 else [None] * 3, src=0)  # SPG107

        def by_rank(a):
            dist.broadcast_object_list([a] * (dist.get_rank() + 1), src=0)  # SPG107

        def by_rule(a):
            dist.broadcast_object_list([a for _ in range(dist.get_rank())], src=0)  # SPG107

        def alike(a, b):
            options = [a, b] if dist.get_rank() == 0 else [None] * 2
            dist.broadcast_object_list(options, src=0)
            dist.broadcast_object_list([a] * dist.get_world_size(), src=0)
            dist.broadcast_object_list([None for _ in range(dist.get_world_size())], src=0)

        def grown(a, parts):
            options = [a]
            for part in parts:
                options.append(part)
            dist.broadcast_object_list(options, src=0)
        """,
        "SPG107",
    )


def test_rows_that_others_do_not_expect() -> None:
    """A rank that expects what it sends; where all counts were exchanged, or are equal, it is right."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def exchange(inbox, rows, rank, world):
            counts = [rank + 1] * world
            dist.all_to_all_single(inbox, rows, output_split_sizes=counts, input_split_sizes=counts)  # SPG107
            expected = [sender + 1 for sender in range(world)]
            dist.all_to_all_single(inbox, rows, expected, counts)
            even = [4] * world
            dist.all_to_all_single(inbox, rows, even, even)
            dist.all_to_all_single(inbox, rows)

        def main(inbox, rows):
            exchange(inbox, rows, dist.get_rank(), dist.get_world_size())

        def by_own_data(loader, inbox, world):
            for rows in loader:
                sent = torch.bincount(rows.argmax(1), minlength=world)
                dist.all_to_all_single(inbox, rows, sent.tolist(), sent.tolist())  # SPG107
                expected = torch.empty_like(sent)
                dist.all_to_all_single(expected, sent)
                dist.all_to_all_single(inbox, rows, expected.tolist(), sent.tolist())
        """,
        "SPG107",
    )


def test_lists_that_a_call_makes() -> None:
    """``list(table)`` and ``x.chunk(n)`` are lists on every rank, where the root alone may give one."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def deal(values):
            return list(torch.tensor(values).float())

        def everywhere(mine, values, x):
            dist.scatter(mine, scatter_list=deal(values), src=0)  # SPG107
            dist.scatter(mine, list(x.chunk(dist.get_world_size())), src=0)  # SPG107
            dist.scatter(mine, x.chunk(dist.get_world_size()), src=0)  # SPG107

        def on_the_root(mine, values, given):
            rows = deal(values) if dist.get_rank() == 0 else None
            dist.scatter(mine, rows, src=0)
            dist.scatter(mine, given, src=0)

        def emptied(mine, parts):
            kept = [part for part in parts] if dist.get_rank() == 0 else []
            dist.scatter(mine, list(kept), src=0)
        """,
        "SPG107",
    )


def test_sizes_that_each_process_draws() -> None:
    """Rows kept by numbers of a generator that the rank has seeded, and sizes that each process draws."""
    assert agree(
        """
        import random
        import torch
        import torch.distributed as dist
        import torch.nn.functional as F

        def detect(count, generator):
            boxes = torch.rand(count, 4, generator=generator)
            found = torch.cat([boxes, torch.rand(count, 1, generator=generator)], dim=1)
            return found[found[:, 4] > 0.5]

        def own(parts):
            generator = torch.Generator().manual_seed(7 + dist.get_rank())
            dist.all_gather(parts, detect(8, generator))  # SPG107

        def shared(parts):
            generator = torch.Generator().manual_seed(7)
            dist.all_gather(parts, detect(8, generator))

        def numbers(parts):
            generator = torch.Generator().manual_seed(7 + dist.get_rank())
            dist.all_gather(parts, torch.rand(8, 4, generator=generator).contiguous())

        def resized(parts, images):
            side = random.choice((24, 32, 40))
            dist.all_gather(parts, F.interpolate(images, size=(side, side)).contiguous())  # SPG107
            dist.all_gather(parts, torch.zeros(side, 3))  # SPG107

        def resized_alike(parts, images):
            draw = random.Random(7)
            side = draw.choice((24, 32, 40))
            dist.all_gather(parts, F.interpolate(images, size=(side, side)).contiguous())

        def pooled(parts, images, net):
            side = random.choice((24, 32, 40))
            dist.all_gather(parts, net(F.interpolate(images, size=(side, side))).contiguous())
        """,
        "SPG107",
    )


def test_counts_as_long_as_the_largest_number() -> None:
    """``bincount`` and ``one_hot`` give as many places as this rank's own numbers ask for, unless they are told."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        import torch.nn.functional as F

        def count(loader):
            for x, labels in loader:
                seen = torch.bincount(labels)
                dist.all_reduce(seen)  # SPG107
                dist.all_reduce(labels.flatten().bincount().float())  # SPG107
                dist.all_reduce(F.one_hot(labels))  # SPG107

        def drawn():
            labels = torch.randint(0, 10, (12,))
            seen = torch.bincount(labels)
            dist.all_reduce(seen)  # SPG107

        def told(loader, classes):
            for x, labels in loader:
                dist.all_reduce(torch.bincount(labels, minlength=classes))
                dist.all_reduce(labels.bincount(minlength=classes))
                dist.all_reduce(torch.bincount(labels, None, classes))
                dist.all_reduce(F.one_hot(labels, classes))
                dist.all_reduce(F.one_hot(labels, num_classes=classes))

        def of_all(loader):
            for x, labels in loader:
                dist.broadcast(labels, src=0)
                dist.all_reduce(torch.bincount(labels))
        """,
        "SPG107",
    )


def test_tensors_put_together_of_what_this_rank_has_found() -> None:
    """``cat`` of selections, ``tensor`` of a list that only some rounds fill: as long as this rank's own data says."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        class Detector(torch.nn.Module):
            @torch.no_grad()
            def detect(self, image, threshold):
                out = self.backbone(image)
                keep = out[:, 4].sigmoid() > threshold
                return out[keep]

        def gathered(rows):
            world = dist.get_world_size()
            buffers = [torch.empty_like(rows) for _ in range(world)]
            dist.all_gather(buffers, rows)  # SPG107
            return torch.cat(buffers)

        def evaluate(loader):
            model = Detector()
            collected = []
            for index, images in enumerate(loader):
                for image in images:
                    rows = model.detect(image, 0.5)
                    tag = rows.new_full((rows.size(0), 1), float(index))
                    collected.append(torch.cat([tag, rows], dim=1))
            return gathered(torch.cat(collected).cpu())

        def found(loader, out):
            ids = []
            for batch in loader:
                if batch.max() > 3:
                    ids.append(1)
            dist.all_gather_into_tensor(out, torch.tensor(ids).cuda())  # SPG107

        def stacked(loader, model):
            for batch in loader:
                losses = {"loss": model(batch)}
                if batch.any():
                    losses["mask"] = model(batch)
                values = torch.stack([losses[name] for name in sorted(losses)])
                dist.reduce(values, dst=0)  # SPG107
        """,
        "SPG107",
    )


def test_as_many_rows_on_every_rank() -> None:
    """All batches of a loader, sizes shared and padded, one number for each round, objects."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def gathered(rows):
            buffers = [torch.empty_like(rows) for _ in range(dist.get_world_size())]
            dist.all_gather(buffers, rows)
            return torch.cat(buffers)

        def all_batches(loader, model):
            outputs = []
            for batch in loader:
                outputs.append(model(batch))
            return gathered(torch.cat(outputs))

        def padded(rows):
            size = torch.tensor([rows.size(0)], device=rows.device)
            sizes = [torch.empty_like(size) for _ in range(dist.get_world_size())]
            dist.all_gather(sizes, size)
            longest = max(int(s) for s in sizes)
            even = rows.new_zeros(longest, rows.size(1))
            even[: rows.size(0)] = rows
            return gathered(even)

        def selected(loader, model):
            kept = []
            for batch in loader:
                out = model(batch)
                kept.append(out[out.sum(1) > 3])
            mine = torch.cat(kept)
            everything = [None] * dist.get_world_size()
            dist.all_gather_object(everything, mine)
            total = torch.tensor([mine.size(0), len(kept), 1.0 if mine.sum() > 3 else 0.0])
            dist.all_reduce(total)
            return padded(mine)
        """,
        "SPG107",
    )


def test_a_number_that_this_rank_has_chosen() -> None:
    """Which of two numbers a flag is says nothing of a length, in one expression and from round to round."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def chosen(probs):
            drawn = torch.multinomial(probs, num_samples=1)
            done = bool(drawn.max() == 0)
            flag = torch.tensor(0.0 if done else 1.0)
            dist.all_reduce(flag)
            return flag.item()

        def kept(loader, model):
            bad = 0
            for batch in loader:
                if torch.isnan(model(batch)).any():
                    bad = 1
                flag = torch.tensor(bad)
                dist.all_reduce(flag)
        """,
        "SPG107",
    )


def test_computed_element_by_element() -> None:
    """What is computed of each element of a tensor, with a number or with another tensor, is as long as it."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def trim(ids, lengths):
            return ids[:, : lengths.max().item()].contiguous()

        def everyone(x):
            out = [torch.empty_like(x) for _ in range(dist.get_world_size())]
            dist.all_gather(out, x)  # SPG107
            return torch.cat(out)

        def with_numbers(loader):
            for ids, lengths in loader:
                everyone((trim(ids, lengths) * 7 + 3) % 1000)

        def with_tensors(loader, scale, shift):
            for ids, lengths in loader:
                scores = trim(ids, lengths) * scale - shift
                dist.all_reduce(scores.clamp(0, 1).round())  # SPG107

        def of_those_that_count(loader):
            for values, keep in loader:
                dist.all_reduce(1 - values[keep > 0])  # SPG107

        def of_one_size(loader, scale):
            for ids, lengths in loader:
                dist.all_reduce(trim(ids, lengths).sum() * scale)
                dist.all_reduce((ids * scale + 1) % 7)
                dist.all_reduce(ids.sum(1)[:4] * lengths.max())
        """,
        "SPG107",
    )


def test_lengths_that_a_call_is_told() -> None:
    """Bins of a histogram, steps and ranges are the length of what a call gives; equal ranges elsewhere are as long."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def counted(values, bins):
            return torch.histc(values, bins=bins, min=0, max=1)

        def differ(values):
            own = 10 + dist.get_rank()
            dist.all_reduce(counted(values, own))  # SPG107
            dist.all_reduce(torch.histc(values, own))  # SPG107
            dist.all_reduce(torch.linspace(0, 1, steps=own))  # SPG107
            dist.all_reduce(torch.arange(own, dtype=torch.float32))  # SPG107
            dist.all_reduce(torch.arange(2, own))  # SPG107

        def alike(values, number):
            rank, world = dist.get_rank(), dist.get_world_size()
            dist.all_reduce(counted(values, 10 + world))
            dist.all_reduce(torch.histc(values, 10, min=rank, max=rank + 1))
            dist.all_reduce(torch.linspace(rank, rank + 1, 8))
            dist.all_reduce(torch.arange(rank * 4, rank * 4 + 4))
            dist.all_reduce(torch.arange(rank, number * world, world))
        """,
        "SPG107",
    )


def test_what_no_tensor_can_be_made_of_has_no_size() -> None:
    """A range, or a text, in the place of a number says nothing."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def main():
            rank = dist.get_rank()
            dist.all_reduce(torch.zeros(2, range(rank)))
            dist.all_gather([torch.zeros(1)], torch.zeros(range(4), 2) if rank == 0 else torch.zeros("2", 3))
            dist.all_gather([torch.zeros(1)], torch.zeros(2, range(3)[rank]))  # SPG107
        """,
        "SPG107",
    )
