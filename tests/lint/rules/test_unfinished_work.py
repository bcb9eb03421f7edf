"""Lists from which what is done is left out: each rank has as many items as its own work has left."""

from __future__ import annotations

from tests.lint.rules.marked import agree

RULES = ("SPG101", "SPG102", "SPG305", "SPG401", "SPG402")


def test_as_many_as_are_left() -> None:
    """An early return in a helper, a branch, a loop; by attribute, by key, by flags beside; numbers of what is left."""
    assert agree(
        """
        import torch.distributed as dist

        def generate(prompts):
            if not prompts:
                return []  # SPG102
            parts = [None] * dist.get_world_size()
            dist.all_gather_object(parts, prompts)
            return parts

        class Player:
            def play(self, episodes, turns):
                for turn in range(turns):
                    left = [e for e in episodes if not e.done]
                    generate([e.prompt for e in left])

            def by_key(self, x):
                left = [e for e in self.episodes if not e["finished"]]
                if left:
                    dist.all_reduce(x)  # SPG305

            def by_flags(self, prompts, dones, x):
                left = [p for p, d in zip(prompts, dones) if not d]
                for one in left:
                    dist.all_reduce(x)  # SPG401

            def by_place(self, dones, x):
                rows = [i for i, done in enumerate(dones) if not done]
                if len(rows) > 0:
                    dist.all_reduce(x)  # SPG305

            def by_array(self, prompts, finished, x):
                for p in [p for i, p in enumerate(prompts) if not finished[i]]:
                    dist.all_reduce(x)  # SPG401

            def until_all_are(self, episodes, x):
                left = list(episodes)
                while left:
                    dist.all_reduce(x)  # SPG402
                    left = [e for e in left if not e.is_finished]
        """,
        *RULES,
    )


def test_as_many_everywhere() -> None:
    """What all ranks were told, other questions, what nobody waits for, and a number that is agreed on."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def by_kind(layers, callbacks, x):
            for layer in [one for one in layers if one.trainable]:
                dist.all_reduce(layer.grad)
            if [one for one in callbacks if one.name.endswith("done")]:
                dist.all_reduce(x)

        def already(stages, done, config, x):
            for stage in [s for s in stages if s not in done]:
                dist.all_reduce(x)
            for stage in [s for s in stages if config.finished or not done]:
                dist.all_reduce(x)

        def told(episodes, x):
            everyone = [None] * dist.get_world_size()
            dist.all_gather_object(everyone, episodes)
            left = [e for e in everyone if not e.done]
            if left:
                dist.all_reduce(x)

        def always(episodes, x):
            left = [e for e in episodes if not e.done]
            dist.all_reduce(x)
            return left if left else None

        def agreed(episodes, x):
            left = torch.tensor([len([e for e in episodes if not e.done])])
            dist.all_reduce(left)
            if left.item() > 0:
                dist.all_reduce(x)
        """,
        *RULES,
    )
