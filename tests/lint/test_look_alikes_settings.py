"""Settings that hang on objects whose contents are each rank's own: they are the same on all ranks."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_the_configuration_of_a_split_model() -> None:
    """What `model.config` says is alike where the model's parameters are not; the data themselves are each rank's."""
    assert agree(
        """
        import torch.distributed as dist

        def work(loader, x):
            for batch in loader:
                model = batch["model"]
                if model.config["optimizer"]["device"] == "cpu":
                    continue
                if model.cfg.frozen:
                    break
                dist.all_reduce(x)

        def own(loader, x):
            for batch in loader:
                if batch["model"].weight > 1:
                    continue  # SPG102
                dist.all_reduce(x)
        """,
        "SPG102",
    )


def test_options_of_which_one_is_a_temporary_folder() -> None:
    """A test that hands its own folder to the program's parser says nothing of the other options."""
    assert agree(
        """
        import argparse
        import os
        import tempfile

        import torch.distributed as dist

        def options(given):
            parser = argparse.ArgumentParser()
            parser.add_argument("--data")
            parser.add_argument("--tpu", action="store_true")
            args, rest = parser.parse_known_args(given)
            return parser.parse_args(given) if rest else args

        def run(args, x):
            if args.tpu:
                dist.barrier()
            for _ in range(args.rounds):
                dist.all_reduce(x)

        def test_run(x, to_config):
            with tempfile.TemporaryDirectory() as folder:
                run(options(["--data", folder]), x)
                run(to_config(options(["--data", folder])), x)

        def by_folder(folder, x):
            if os.path.exists(folder):
                dist.all_reduce(x)  # SPG304
        """,
        "SPG304",
        "SPG401",
    )


def test_settings_that_are_set_by_name() -> None:
    """A setting is not known to be its default behind a ``setattr`` whose name is handed in."""
    assert agree(
        """
        import dataclasses
        import torch.distributed as dist

        @dataclasses.dataclass
        class Config:
            sharded: bool = False
            tracked: bool = False

        def update(config, **kwargs):
            if isinstance(config, (tuple, list)):
                for one in config:
                    update(one, **kwargs)
            else:
                for name, value in kwargs.items():
                    if hasattr(config, name):
                        setattr(config, name, value)

        def updated(**kwargs):
            first, second = Config(), Config()
            update((first, second), **kwargs)
            if first.tracked and dist.get_rank() == 0:
                dist.barrier()  # SPG101

        def as_it_was():
            config = Config()
            if config.tracked and dist.get_rank() == 0:
                dist.barrier()

        class Net:
            def __init__(self, depth, **kwargs):
                self.tracked = False
                for number in range(depth):
                    setattr(self, f"layer{number}", number)

            def meet(self):
                if self.tracked and dist.get_rank() == 0:
                    dist.barrier()

        def made(depth):
            Net(depth).meet()

        class Open:
            sharded = False

            def __init__(self, **kwargs):
                self.tracked = False
                for name, value in kwargs.items():
                    setattr(self, name, value)

        def opened(**kwargs):
            config = Open(**kwargs)
            if config.tracked:
                if dist.get_rank() == 0:
                    dist.barrier()  # SPG101
            if config.sharded:
                if dist.get_rank() == 0:
                    dist.barrier()  # SPG101
        """,
        "SPG101",
    )


def test_devices_that_are_shown() -> None:
    """Ranks differ in the number of a device alone: that its text holds a word, they see alike."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def by_word(x):
            device = torch.device("cuda", dist.get_rank())
            if "cuda" in str(device):
                dist.all_reduce(x)

        def by_number(x):
            device = torch.device("cuda", dist.get_rank())
            if "1" in str(device):
                dist.all_reduce(x)  # SPG101

        def by_name(x):
            name = "main" if dist.get_rank() == 0 else "other"
            if "main" in str(name):
                dist.all_reduce(x)  # SPG101

        def by_kind(x):
            device = torch.device("cuda") if dist.get_rank() == 0 else torch.device("cpu")
            if "cuda" in str(device):
                dist.all_reduce(x)  # SPG101
        """,
        "SPG101",
    )


def test_loops_that_communicate_only_where_all_ranks_have_been_told_to() -> None:
    """What ends a loop where it does not communicate makes no rank call anything more often than another."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def unfinished(done, synced):
            if synced:
                flag = torch.tensor(0.0 if done else 1.0)
                dist.all_reduce(flag)
                if flag.item() == 0.0:
                    return False
            elif done:
                return False
            return True

        def own(done, synced):
            if synced:
                dist.all_reduce(torch.ones(1))
            return not done

        def generate(scores, synced):
            done = False
            while unfinished(done, synced):
                done = bool(torch.multinomial(scores, 1) > 3)

        def generate_apart(scores, synced):
            done = False
            while own(done, synced):  # SPG402
                done = bool(torch.multinomial(scores, 1) > 3)

        def now_and_then(scores, table):
            done = False
            while (due := table.due()) or not done:
                if due:
                    dist.all_reduce(scores)  # SPG402
                done = bool(torch.multinomial(scores, 1) > 3)
        """,
        "SPG402",
        "SPG303",
    )
