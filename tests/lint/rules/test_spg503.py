"""SPG503: files that one rank makes and another uses, with nothing in between."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_folder_then_file() -> None:
    """A folder made by one rank and written into by all."""
    assert agree(
        """
        import json
        import os
        import shutil
        import time
        from pathlib import Path

        import torch
        import torch.distributed as dist

        def save(folder, shard):
            rank = dist.get_rank()
            if rank == 0:
                os.makedirs(folder, exist_ok=True)
            torch.save(shard, os.path.join(folder, f"{rank}.pt"))  # SPG503
            dist.barrier()

        def slept(shard, folder=Path("/data/x")):
            if dist.get_rank() == 0:
                folder.mkdir()
            time.sleep(5)
            (folder / f"{dist.get_rank()}.json").write_text(shard)  # SPG503

        slept("x")
        """,
        "SPG503",
    )


def test_file_then_read() -> None:
    """A file written or renamed by one rank and read by the others."""
    assert agree(
        """
        import json
        import os
        import shutil
        import time
        from pathlib import Path

        import torch
        import torch.distributed as dist

        def config(path, values):
            if dist.get_rank() == 0:
                with open(path + "/config.json", "w") as out:
                    json.dump(values, out)
            with open(path + "/config.json") as source:  # SPG503
                return json.load(source)

        def publish(path, values):
            if dist.get_rank() != 0:
                return torch.load(path + "/final.pt")
            torch.save(values, path + "/part.pt")
            os.replace(path + "/part.pt", path + "/final.pt")

        def exchange(path, values):
            if dist.get_rank() == 0:
                torch.save(values, path + "/part.pt")
                os.replace(path + "/part.pt", path + "/final.pt")
            return torch.load(path + "/final.pt")  # SPG503
        """,
        "SPG503",
    )


def test_listing() -> None:
    """A folder listed by one rank while another writes in it."""
    assert agree(
        """
        import json
        import os
        import shutil
        import time
        from pathlib import Path

        import torch
        import torch.distributed as dist

        def collect(folder, values):
            rank, last = dist.get_rank(), dist.get_world_size() - 1
            dist.barrier()
            if rank == 0:
                with open(os.path.join(folder, "index.json"), "w") as out:
                    json.dump(values, out)
            if rank == last:
                return os.listdir(folder)  # SPG503
        """,
        "SPG503",
    )


def test_other_host() -> None:
    """A folder that global rank 0 makes is used by the first rank of each host."""
    assert agree(
        """
        import json
        import os
        import shutil
        import time
        from pathlib import Path

        import torch
        import torch.distributed as dist

        def save(folder, state):
            where = os.path.join(folder, "latest")
            if dist.get_rank() == 0:
                os.makedirs(where, exist_ok=True)
            dist.barrier()
            if int(os.environ["LOCAL_RANK"]) == 0:
                torch.save(state, os.path.join(where, "state.pt"))  # SPG503
        """,
        "SPG503",
    )


def test_ordered() -> None:
    """A barrier, any collective or an early return of the others orders the two."""
    assert agree(
        """
        import json
        import os
        import shutil
        import time
        from pathlib import Path

        import torch
        import torch.distributed as dist

        def save(folder, shard):
            if dist.get_rank() == 0:
                os.makedirs(folder, exist_ok=True)
            dist.barrier()
            torch.save(shard, os.path.join(folder, f"{dist.get_rank()}.pt"))

        def told(folder, shard):
            ready = [None]
            if dist.get_rank() == 0:
                os.makedirs(folder, exist_ok=True)
                ready[0] = True
            dist.broadcast_object_list(ready, src=0)
            torch.save(shard, os.path.join(folder, f"{dist.get_rank()}.pt"))

        def alone(folder, values):
            if dist.get_rank() != 0:
                return
            os.makedirs(folder, exist_ok=True)
            torch.save(values, os.path.join(folder, "x.pt"))
        """,
        "SPG503",
    )


def test_made_by_all() -> None:
    """Every rank makes the folder itself, or waits for the file."""
    assert agree(
        """
        import json
        import os
        import shutil
        import time
        from pathlib import Path

        import torch
        import torch.distributed as dist

        def everywhere(folder, shard):
            os.makedirs(folder, exist_ok=True)
            torch.save(shard, os.path.join(folder, f"{dist.get_rank()}.pt"))

        def polled(path, values):
            if dist.get_rank() == 0:
                torch.save(values, path + "/x.pt")
            while not os.path.exists(path + "/x.pt"):
                time.sleep(1)
            return torch.load(path + "/x.pt")

        def only_if_there(path, values):
            if dist.get_rank() == 0:
                torch.save(values, path + "/x.pt")
            if os.path.exists(path + "/x.pt"):
                return torch.load(path + "/x.pt")
        """,
        "SPG503",
    )


def test_other_paths() -> None:
    """Another file, or one of a rank's own, has nothing to do with it."""
    assert agree(
        """
        import json
        import os
        import shutil
        import time
        from pathlib import Path

        import torch
        import torch.distributed as dist

        def other(folder, values):
            if dist.get_rank() == 0:
                torch.save(values, os.path.join(folder, "a.pt"))
            return torch.load(os.path.join(folder, "b.pt"))
        """,
        "SPG503",
    )


def test_miss_two_names() -> None:
    """Known miss: the same file by two names."""
    assert agree(
        """
        import json
        import os
        import shutil
        import time
        from pathlib import Path

        import torch
        import torch.distributed as dist

        def two_names(first, second, values):
            if dist.get_rank() == 0:
                torch.save(values, first + "/x.pt")
            return torch.load(second + "/x.pt")
        """,
        "SPG503",
    )


def test_taken_away_while_others_may_read() -> None:
    """A folder that one rank removes or renames right after all have read or written in it."""
    assert agree(
        """
        import os
        import shutil
        import torch
        import torch.distributed as dist

        def removed(folder, model):
            dist.barrier()
            model.load_state_dict(torch.load(folder / "common.pt"))
            if dist.get_rank() == 0:
                shutil.rmtree(folder)  # SPG503

        def renamed(partial, final, shard):
            torch.save(shard, os.path.join(partial, f"shard-{dist.get_rank()}.pt"))
            if dist.get_rank() == 0:
                os.rename(partial, final)  # SPG503
            dist.barrier()
        """,
        "SPG503",
    )


def test_taken_away_when_nobody_needs_it() -> None:
    """Behind a barrier, by the rank that alone has read it, or another folder."""
    assert agree(
        """
        import os
        import shutil
        import torch
        import torch.distributed as dist

        def removed(folder, model):
            model.load_state_dict(torch.load(folder / "common.pt"))
            dist.barrier()
            if dist.get_rank() == 0:
                shutil.rmtree(folder)

        def alone(path):
            text = None
            if dist.get_rank() == 0:
                with open(path) as f:
                    text = f.read()
                os.remove(path)
            dist.barrier()
            return text

        def another(folder, old, model):
            model.load_state_dict(torch.load(folder / "common.pt"))
            if dist.get_rank() == 0:
                shutil.rmtree(old)
        """,
        "SPG503",
    )


def test_folder_that_every_rank_may_make() -> None:
    """A folder made with all above it, there or not, needs no other rank's; one that needs its parent does."""
    assert agree(
        """
        import os
        import shutil
        from pathlib import Path

        import torch.distributed as dist

        def copied(code, folder):
            if dist.get_rank() == 0:
                os.makedirs(folder, exist_ok=True)
            shutil.copytree(code, os.path.join(folder, str(dist.get_rank())))
            dist.barrier()

        def copied_from(folder):
            if dist.get_rank() == 0:
                os.makedirs(folder, exist_ok=True)
            shutil.copytree(folder, str(dist.get_rank()))  # SPG503
            dist.barrier()

        def with_parents(config: Path):
            if dist.get_rank() == 0:
                os.makedirs(config, exist_ok=True)
            os.makedirs(os.path.join(config, "images"), exist_ok=True)
            (config / "logs").mkdir(parents=True, exist_ok=True)
            dist.barrier()

        def without(config: Path):
            if dist.get_rank() == 0:
                config.mkdir(parents=True, exist_ok=True)
            (config / "images").mkdir(exist_ok=True)  # SPG503
            dist.barrier()
        """,
        "SPG503",
    )


def test_what_a_helper_takes_away_is_shown_at_its_call() -> None:
    """The barrier is missing before the call that one rank makes, not in the helper that any rank may call."""
    assert agree(
        """
        import shutil
        import torch
        import torch.distributed as dist

        class Cache:
            def __init__(self, folder="cache"):
                self.folder = folder

            def read(self):
                return torch.load(self.folder + "/part.pt")

            def drop(self):
                shutil.rmtree(self.folder)

        def early():
            cache = Cache()
            part = cache.read()
            if dist.get_rank() == 0:
                cache.drop()  # SPG503
            dist.all_reduce(part)

        def late():
            cache = Cache()
            part = cache.read()
            dist.all_reduce(part)
            if dist.get_rank() == 0:
                cache.drop()
        """,
        "SPG503",
    )


def test_who_has_left_inside_a_block_does_not_read() -> None:
    """A return in the block of a manager of the project leaves the function, not the manager alone."""
    assert agree(
        """
        import contextlib
        import torch
        import torch.distributed as dist

        @contextlib.contextmanager
        def timed():
            print("begin")
            yield
            print("end")

        def left_inside(x):
            if dist.get_rank() == 0:
                torch.save(x, "cache.pt")
            with timed():
                if dist.get_rank() != 0:
                    return None
            return torch.load("cache.pt")

        def all_go_on(x):
            if dist.get_rank() == 0:
                torch.save(x, "cache.pt")
            with timed():
                print(x)
            return torch.load("cache.pt")  # SPG503
        """,
        "SPG503",
    )


def test_folders_of_models() -> None:
    """What ``save_pretrained`` writes is a folder, which ``from_pretrained`` reads."""
    assert agree(
        """
        from pathlib import Path
        import torch
        import torch.distributed as dist
        from accelerate import Accelerator
        from datasets import load_from_disk
        from transformers import AutoModelForCausalLM, AutoTokenizer

        def best_of_all(rounds, name, out):
            accelerator = Accelerator()
            model = accelerator.prepare(AutoModelForCausalLM.from_pretrained(name))
            best, folder = 0, Path(out) / "best"
            for score in rounds:
                if score > best and accelerator.is_main_process:
                    accelerator.unwrap_model(model).save_pretrained(folder)
            return AutoModelForCausalLM.from_pretrained(folder)  # SPG503

        def tokens(tokenizer, out):
            if dist.get_rank() == 0:
                tokenizer.save_pretrained(out)
            return AutoTokenizer.from_pretrained(out)  # SPG503

        def one_of_its_files(name, out):
            model = AutoModelForCausalLM.from_pretrained(name)
            if dist.get_rank() == 0:
                model.save_pretrained(out)
            return torch.load(Path(out) / "pytorch_model.bin")  # SPG503

        def in_order(rounds, name, out):
            accelerator = Accelerator()
            model = AutoModelForCausalLM.from_pretrained(name)
            if accelerator.is_main_process:
                model.save_pretrained(out)
            accelerator.wait_for_everyone()
            return AutoModelForCausalLM.from_pretrained(out)

        def by_the_same_rank(name, out):
            model = AutoModelForCausalLM.from_pretrained(name)
            if dist.get_rank() == 0:
                model.save_pretrained(out)
                model = AutoModelForCausalLM.from_pretrained(out)

        def another_model(name, out):
            model = AutoModelForCausalLM.from_pretrained(name)
            if dist.get_rank() == 0:
                model.save_pretrained(out)
            return AutoModelForCausalLM.from_pretrained(name)
        """,
        "SPG503",
    )


def test_a_switch_is_no_path() -> None:
    """Two calls that are both given `True` have no file in common."""
    assert agree(
        """
        import os

        import torch.distributed as dist
        from transformers import AutoTokenizer

        def train(args):
            if dist.get_rank() == 0:
                os.makedirs(args.logs, exist_ok=True)
            tokenizer = AutoTokenizer.from_pretrained(args.pretrained, trust_remote_code=True)
            dist.barrier()
            return tokenizer

        def same_folder(args):
            if dist.get_rank() == 0:
                os.makedirs(args.logs, exist_ok=True)
            tokenizer = AutoTokenizer.from_pretrained(args.logs, trust_remote_code=True)  # SPG503
            dist.barrier()
            return tokenizer
        """,
        "SPG503",
    )
