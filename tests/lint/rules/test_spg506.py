"""SPG506: checkpoints that every rank writes a part of, under a name of its own."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_collective_saves_by_loss_clock_and_chance() -> None:
    """The tag, the folder or the writer's path holds this rank's own loss, its clock, or a random number."""
    assert agree(
        """
        import datetime
        import os
        import random
        import time
        import uuid

        import deepspeed
        import torch.distributed as dist
        import torch.distributed.checkpoint as dcp
        from accelerate import Accelerator
        from torch.distributed.checkpoint import FileSystemWriter
        from torch.nn.parallel import DistributedDataParallel as DDP

        def by_loss(config, model, loader, out):
            engine, *_ = deepspeed.initialize(config=config, model=model)
            for step, batch in enumerate(loader):
                loss = engine(batch)
                engine.backward(loss)
                engine.step()
            engine.save_checkpoint(out, tag="step-%d-%.3f" % (step, loss.item()))  # SPG506
            engine.save_checkpoint(out, f"loss{float(loss):.2f}")  # SPG506

        def folder():
            return os.path.join("out", datetime.datetime.now().strftime("%H-%M-%S"))

        def by_clock(state):
            dist.init_process_group()
            dcp.save(state, checkpoint_id=folder())  # SPG506
            dcp.save(state, storage_writer=FileSystemWriter(f"out/{time.time():.0f}"))  # SPG506

        def by_chance(state):
            accelerator = Accelerator()
            accelerator.save_state(f"out/{uuid.uuid4().hex}")  # SPG506
            accelerator.save_state(output_dir="out/%d" % random.randint(0, 9999))  # SPG506

        def by_process(state):
            dcp.async_save(state, checkpoint_id=f"out/{os.getpid()}").result()  # SPG506

        def by_rank(state):
            rank = dist.get_rank()
            dcp.save(state, checkpoint_id=f"out/{rank}")  # SPG506
        """,
        "SPG506",
    )


def test_collective_saves_by_what_all_know() -> None:
    """The step, a reduced loss, a name that rank 0 has chosen, a seeded number, what stands in the folder."""
    assert agree(
        """
        import os
        import random
        import time
        from pathlib import Path

        import deepspeed
        import torch.distributed as dist
        import torch.distributed.checkpoint as dcp
        from torch.distributed.checkpoint import FileSystemWriter

        def by_step(config, model, loader, out):
            engine, *_ = deepspeed.initialize(config=config, model=model)
            for step, batch in enumerate(loader):
                loss = engine(batch)
                engine.backward(loss)
                engine.step()
                engine.save_checkpoint(out, tag=f"step{step}", client_state={"loss": loss.item()})
            dist.all_reduce(loss)
            engine.save_checkpoint(out, tag=f"step{step}-{loss.item():.2f}")

        def chosen(state):
            names = [time.strftime("%H-%M-%S")]
            dist.broadcast_object_list(names, src=0)
            dcp.save(state, checkpoint_id=Path("out") / names[0])
            dcp.save({"time": time.time(), **state}, storage_writer=FileSystemWriter("out"))

        def seeded(state):
            random.seed(3)
            dcp.save(state, checkpoint_id=f"out/{random.randint(0, 99)}")

        def next_number(state, out):
            dcp.save(state, checkpoint_id=os.path.join(out, str(len(os.listdir(out)))))

        def own_replica(state, out, replica):
            rank = dist.get_rank()
            group = dist.new_group([0, 1])
            dcp.save(state, checkpoint_id=f"{out}/{rank // 2}", process_group=group)
        """,
        "SPG506",
    )


def test_files_by_rank_in_a_folder_by_clock() -> None:
    """Each rank writes a file that is named after it, into a folder named by its own clock."""
    assert agree(
        """
        import os
        import time
        import uuid
        from datetime import datetime
        from pathlib import Path

        import numpy as np
        import torch
        import torch.distributed as dist

        class Run:
            def __init__(self, root):
                self.folder = Path(root) / datetime.now().strftime("%Y-%m-%d_%H-%M-%S")  # SPG506

            def save(self, state):
                rank = dist.get_rank()
                target = self.folder / "shards"
                target.mkdir(parents=True, exist_ok=True)
                torch.save(state, target / f"rank{rank}.pt")
                torch.save(torch.get_rng_state(), target / f"random{rank}.pt")
                dist.barrier()

        def train(state):
            dist.init_process_group()
            Run("out").save(state)

        def plain(array):
            rank = dist.get_rank()
            stamp = time.strftime("%Y%m%d-%H%M%S")  # SPG506
            np.save(f"out/{stamp}/{rank}.npy", array)
            dist.barrier()

        def joined(array):
            path = os.path.join("out", str(uuid.uuid4()), "part-" + str(dist.get_rank()) + ".npy")  # SPG506
            np.save(path, array)
            dist.barrier()
        """,
        "SPG506",
    )


def test_files_that_need_no_common_folder() -> None:
    """One rank alone, a folder of its own, a clock in the name, a common name, a log."""
    assert agree(
        """
        import os
        import time

        import torch
        import torch.distributed as dist

        def one_rank(state):
            if dist.get_rank() == 0:
                torch.save(state, f"out/{time.time()}/rank{dist.get_rank()}.pt")
            dist.barrier()

        def own_folder(state):
            rank = dist.get_rank()
            torch.save(state, f"out/rank{rank}/{time.time()}/{rank}.pt")
            dist.barrier()

        def clock_in_the_name(state):
            torch.save(state, f"out/trace-{dist.get_rank()}-{time.time()}.pt")
            dist.barrier()

        def shared(state):
            stamp = [time.strftime("%H%M%S")]
            dist.broadcast_object_list(stamp, src=0)
            torch.save(state, os.path.join("out", stamp[0], f"{dist.get_rank()}.pt"))
            dist.barrier()

        def log(lines):
            with open(f"logs/{time.time()}/{dist.get_rank()}.log", "a") as out:
                out.write(lines)
            dist.barrier()
        """,
        "SPG506",
    )


def test_known_limits() -> None:
    """Not found: an output folder by the clock in a trainer's arguments; a path that rank 0's is taken for."""
    assert agree(
        """
        import time

        import lightning as L
        from transformers import Trainer, TrainingArguments

        def trained(model, data):
            args = TrainingArguments(output_dir=f"out/{time.time()}")
            Trainer(model, args, train_dataset=data).train()

        def fabric(model):
            fabric = L.Fabric()
            fabric.launch()
            fabric.save(f"out/{time.time()}", {"model": model})
        """,
        "SPG506",
    )


def test_parts_in_temporary_folders() -> None:
    """Each rank makes a temporary folder, writes its part there, and one rank reads the parts of all."""
    assert agree(
        """
        import os
        import pickle
        import tempfile
        from pathlib import Path

        import torch
        import torch.distributed as dist

        def collect(part, folder=None):
            rank, world = dist.get_rank(), dist.get_world_size()
            if folder is None:
                folder = tempfile.mkdtemp(prefix="eval")  # SPG506
            with open(os.path.join(folder, f"part_{rank}.pkl"), "wb") as out:
                pickle.dump(part, out)
            dist.barrier()
            if rank != 0:
                return None
            return [torch.load(os.path.join(folder, f"part_{other}.pkl")) for other in range(world)]

        def by_context(part):
            rank = dist.get_rank()
            with tempfile.TemporaryDirectory() as folder:  # SPG506
                torch.save(part, Path(folder) / f"{rank}.pt")
                dist.barrier()
                if rank == 0:
                    for other in range(dist.get_world_size()):
                        print(torch.load(Path(folder) / f"{other}.pt"))
                dist.barrier()

        class Collector:
            def __init__(self):
                self.folder = tempfile.mkdtemp()  # SPG506

            def put(self, part):
                torch.save(part, f"{self.folder}/part{dist.get_rank()}.pt")
                dist.barrier()

            def get(self):
                return [torch.load(f"{self.folder}/{name}") for name in os.listdir(self.folder)]

        def evaluate(part):
            collector = Collector()
            collector.put(part)
            if dist.get_rank() == 0:
                print(collector.get())
        """,
        "SPG506",
    )


def test_temporary_folders_that_are_right() -> None:
    """A folder that rank 0 has made for all, one for this rank's own use, one that was given."""
    assert agree(
        """
        import os
        import tempfile

        import torch
        import torch.distributed as dist

        def chosen(part):
            rank = dist.get_rank()
            box = [tempfile.mkdtemp() if rank == 0 else None]
            dist.broadcast_object_list(box, src=0)
            torch.save(part, os.path.join(box[0], f"{rank}.pt"))
            dist.barrier()
            if rank == 0:
                return [torch.load(os.path.join(box[0], f"{other}.pt")) for other in range(dist.get_world_size())]

        def scratch(part):
            rank = dist.get_rank()
            folder = tempfile.mkdtemp()
            torch.save(part, os.path.join(folder, f"{rank}.pt"))
            dist.barrier()
            return torch.load(os.path.join(folder, f"{rank}.pt"))

        def given(part, folder):
            rank = dist.get_rank()
            torch.save(part, os.path.join(folder, f"{rank}.pt"))
            dist.barrier()
            if rank == 0:
                return [torch.load(os.path.join(folder, f"{other}.pt")) for other in range(dist.get_world_size())]
        """,
        "SPG506",
    )
