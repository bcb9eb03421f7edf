"""SPG709: a flag for the local rank that no launcher passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint.rules.marked import agree, in_files, reported

SCRIPT = '''
    """{launcher}"""
    import argparse
    import os
    import torch
    import torch.distributed as dist

    def arguments():
        parser = argparse.ArgumentParser()
        parser.add_argument("--batch-size", type=int, default=8)
        {flag}
        return parser.parse_args()

    def main():
        args = arguments()
        {before}
        torch.cuda.set_device(args.local_rank)
        dist.init_process_group("nccl")
        if args.local_rank == 0:
            print("started")
        dist.destroy_process_group()
    '''
FLAG = 'parser.add_argument("--local_rank", type=int, default=0)'


def script(flag: str = FLAG, launcher: str = "torchrun --nproc-per-node 8 x.py", before: str = "pass") -> str:
    """The script with another flag, launcher or preparation."""
    return SCRIPT.format(flag=flag, launcher=launcher, before=before)


@pytest.mark.parametrize(
    "flag",
    [
        FLAG,
        'parser.add_argument("--local-rank", default=-1, type=int)',
        'parser.add_argument("--local_rank", "--local-rank", type=int, default=0, help="given by the launcher")',
        'parser.add_argument("--local_rank", type=int)',
    ],
)
def test_a_flag_that_torchrun_does_not_pass(flag: str) -> None:
    """Underscore, hyphen, both, a default of 0, -1 or none."""
    assert agree(script(f"{flag}  # SPG709"), "SPG709")


def test_other_ways_to_declare_and_to_use() -> None:
    """A click option that is a parameter; a device text; the options as a dict."""
    assert agree(
        """
        import os
        import click
        import torch
        import torch.distributed as dist

        @click.command()
        @click.option("--local_rank", default=0)  # SPG709
        def main(local_rank):
            dist.init_process_group("nccl", init_method="env://")
            model = torch.nn.Linear(2, 2).to(f"cuda:{local_rank}")
            torch.nn.parallel.DistributedDataParallel(model, device_ids=[local_rank])
        """,
        "SPG709",
    )
    assert agree(
        """
        import argparse, os
        import torch.distributed as dist

        parser = argparse.ArgumentParser()
        parser.add_argument("--local-rank", type=int, default=0)  # SPG709

        def main():
            options = vars(parser.parse_args())
            dist.init_process_group("gloo", rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
            if options["local_rank"] == 0:
                print("first")
        """,
        "SPG709",
    )


@pytest.mark.parametrize(
    ("flag", "launcher", "before"),
    [
        (
            'parser.add_argument("--local_rank", type=int, default=int(os.getenv("LOCAL_RANK", 0)))',
            "torchrun",
            "pass",
        ),
        (FLAG, "torchrun", 'args.local_rank = int(os.environ.get("LOCAL_RANK", args.local_rank))'),
        (FLAG, "torchrun", 'args.local_rank = int(os.environ["RANK"]) % torch.cuda.device_count()'),
        (FLAG, "python -m torch.distributed.launch --nproc_per_node 8 x.py", "pass"),
        (FLAG, "deepspeed x.py", "pass"),
        (FLAG, "torchrun", "init_distributed_device(args)"),
        ('parser.add_argument("--local_rank", type=int, required=True)', "torchrun", "pass"),
        ('parser.add_argument("--local_rank_file", default="x")', "torchrun", "pass"),
    ],
)
def test_a_flag_that_is_passed_or_replaced(flag: str, launcher: str, before: str) -> None:
    """The environment as default or afterwards, a launcher that passes the flag, a library's helper, no default."""
    assert reported(script(flag, launcher, before), "SPG709") == []


def test_a_launcher_of_ones_own_passes_it() -> None:
    """A command with the flag in it, and processes that the script spawns."""
    assert agree(
        """
        import argparse, subprocess, sys
        import torch
        import torch.distributed as dist

        parser = argparse.ArgumentParser()
        parser.add_argument("--local_rank", type=int, default=-1)

        def start(count):
            for index in range(count):
                subprocess.Popen([sys.executable, __file__, f"--local_rank={index}"])

        def main():
            args = parser.parse_args()
            dist.init_process_group("gloo", init_method="env://")
            if args.local_rank == 0:
                print("first")
        """,
        "SPG709",
    )


def test_only_possible_where_nothing_tells_of_the_launcher() -> None:
    """A launcher that passes the flag may start a program that takes all else from arguments."""
    assert reported(script(launcher="Train a model."), "SPG709") == []


def test_the_files_that_a_script_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A helper of the project that reads LOCAL_RANK, imported through another file, makes the flag harmless."""
    monkeypatch.chdir(tmp_path)
    body = (
        '"""torchrun train.py"""\nimport argparse\nimport torch.distributed as dist\nfrom common import setup\n'
        'parser = argparse.ArgumentParser()\nparser.add_argument("--local_rank", type=int, default=0)\n\n'
        "def main():\n    args = parser.parse_args()\n    setup(args)\n"
        "    if args.local_rank == 0:\n        print(1)\n"
    )
    common = "import torch.distributed as dist\nfrom env import local\n\ndef setup(args):\n"
    (tmp_path / "train.py").write_text(body)
    (tmp_path / "common.py").write_text(common + "    dist.init_process_group('gloo')\n    local(args)\n")
    (tmp_path / "env.py").write_text(
        "import os\n\ndef local(args):\n    args.rank = os.environ['LOCAL_RANK']\n"
    )
    files = dict.fromkeys(("train.py", "common.py", "env.py"), "")
    assert in_files(files, "SPG709") == []
    (tmp_path / "env.py").write_text("def local(args):\n    print(args)\n")
    assert in_files(files, "SPG709") == [("train.py", 6, "SPG709")]


def test_flags_that_another_value_stands_in_for() -> None:
    """Where the flag is None the device is another one already; without that, nobody chooses one."""
    source = """
        import argparse
        import os
        import torch
        import torch.distributed as dist

        def main():
            parser = argparse.ArgumentParser()
            parser.add_argument("--local_rank", type=int, default=None)
            local_rank = parser.parse_args().local_rank
            rank = int(os.environ["RANK"])
            CHOICE
            if local_rank is not None:
                TAKE
            torch.cuda.set_device(device)
            dist.init_process_group("nccl", rank=rank, world_size=int(os.environ["WORLD_SIZE"]))
        """
    chosen = source.replace("CHOICE", "device = rank % torch.cuda.device_count()").replace(
        "TAKE", "device = local_rank"
    )
    assert agree(chosen, "SPG709")
    alone = source.replace("CHOICE", "device = 0").replace("TAKE", "torch.cuda.set_device(local_rank)")
    assert agree(alone.replace("default=None)", "default=None)  # SPG709"), "SPG709")
