"""SPG208: what one rank fetches alone while the others wait."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_download_then_barrier() -> None:
    """A download or unpacking by one rank, then a collective of all."""
    assert agree(
        """
        import tarfile
        import urllib.request

        import torch
        import torch.distributed as dist

        def fetch(url, path):
            if dist.get_rank() == 0:
                urllib.request.urlretrieve(url, path)  # SPG208
            dist.barrier()

        def unpack(store, path):
            with tarfile.open(path) as archive:
                archive.extractall(path)

        def main(store, path):
            if dist.get_rank() == 0:
                unpack(store, path)  # SPG208
            dist.barrier()

        def through_client(client, key, total):
            if dist.get_rank() == 0:
                client.download_file(key)  # SPG208
            dist.all_reduce(total)
        """,
        "SPG208",
    )


def test_outcome_shared() -> None:
    """A caught error, a deferral, or no collective behind is silent."""
    assert agree(
        """
        import tarfile
        import urllib.request

        import torch
        import torch.distributed as dist

        import spmdguard as sg

        def told(url, path):
            problem = [None]
            if dist.get_rank() == 0:
                try:
                    urllib.request.urlretrieve(url, path)
                except OSError as error:
                    problem[0] = str(error)
            dist.broadcast_object_list(problem, src=0)

        def deferred(url, path):
            if sg.is_main_process():
                sg.try_or_defer(urllib.request.urlretrieve, url, path)
            sg.sync_should_stop(sg.has_deferred_error())

        def alone(url, path):
            if dist.get_rank() == 0:
                urllib.request.urlretrieve(url, path)
        """,
        "SPG208",
    )


def test_plain_files() -> None:
    """A file written by one rank is another rule's."""
    assert agree(
        """
        import tarfile
        import urllib.request

        import torch
        import torch.distributed as dist

        def save(state, path):
            if dist.get_rank() == 0:
                torch.save(state, path)
            dist.barrier()
        """,
        "SPG208",
    )


def test_miss_all_ranks() -> None:
    """Known miss: a download by every rank, which may fail on one of them."""
    assert agree(
        """
        import tarfile
        import urllib.request

        import torch
        import torch.distributed as dist

        def fetch(url, path):
            urllib.request.urlretrieve(url, path)
            dist.barrier()
        """,
        "SPG208",
    )


def test_program_that_must_succeed() -> None:
    """A program that raises when it fails, started by one rank."""
    assert agree(
        """
        import subprocess

        import torch.distributed as dist

        def copy(command):
            if dist.get_rank() == 0:
                subprocess.run(command, check=True)  # SPG208
            dist.barrier()

        def tolerant(command):
            if dist.get_rank() == 0:
                subprocess.run(command)
            dist.barrier()
        """,
        "SPG208",
    )


def test_catch_around_everything() -> None:
    """A clause around the whole run does not help the ranks that wait."""
    assert agree(
        """
        import urllib.request

        import torch.distributed as dist

        def main(url):
            try:
                if dist.get_rank() == 0:
                    urllib.request.urlretrieve(url, "x")  # SPG208
                dist.barrier()
            except Exception as error:
                print(error)
                raise
        """,
        "SPG208",
    )


def test_servers_asked_by_one_rank() -> None:
    """A tracker's run that one rank starts, and a barrier behind; told, far behind, or a mere request, it is silent."""
    assert agree(
        """
        import mlflow
        import requests
        import torch.distributed as dist
        import wandb
        from accelerate import Accelerator
        from torch.nn.parallel import DistributedDataParallel

        def tracked(accelerator: Accelerator, config):
            if accelerator.is_main_process:
                wandb.init(project="p", config=config)  # SPG208
            accelerator.wait_for_everyone()

        def asked(url, x):
            if dist.get_rank() == 0:
                requests.post(url, json={"state": "started"})
            dist.all_reduce(x)

        def asked_and_tracked(url):
            if dist.get_rank() == 0:
                requests.post(url, json={"state": "started"})
                wandb.init(project="p")  # SPG208
            dist.barrier()

        class Run:
            def start(self):
                if dist.get_rank() == 0:
                    mlflow.start_run()  # SPG208
                dist.barrier()

        def told(config):
            if dist.get_rank() == 0:
                try:
                    wandb.init(project="p", config=config)
                except Exception as error:
                    print(error)
            dist.barrier()

        def far_behind(config, model, batches):
            model = DistributedDataParallel(model)
            if dist.get_rank() == 0:
                wandb.init(project="p", config=config)
            for batch in batches:
                model(batch).sum().backward()
        """,
        "SPG208",
    )


def test_a_key_is_set_on_success_only() -> None:
    """The others wait for a key of the store that one rank sets after work on files."""
    assert agree(
        """
        import os
        import shutil
        import torch
        import torch.distributed as dist

        def build(path, rows):
            torch.save(rows, path)

        def bounded(store: dist.TCPStore, rank, path, rows, limit):
            if rank == 0:
                rows.dump(open(path, "w"))
                store.set("built", "yes")
            else:
                store.wait(["built"], limit)

        def branch(store: dist.TCPStore, rank, path, rows):
            if rank == 0:
                build(path, rows)  # SPG208
                store.set("built", "yes")
            else:
                store.wait(["built"])

        class Shared:
            def __init__(self, rank):
                self.rank = rank
                self.store = dist.FileStore("keys", 2)

            def prepare(self, path, rows):
                if self.rank == 0:
                    os.makedirs(path)  # SPG208
                    build(path, rows)
                    self.store.set("built", "yes")
                self.store.get("built")

            def unpack(self, path):
                if self.rank == 0:
                    shutil.unpack_archive(path)  # SPG208
                    self.store.set("unpacked", "yes")
                self.store.wait(["unpacked"])
        """,
        "SPG208",
    )


def test_a_key_is_set_either_way() -> None:
    """A key for the outcome, a key in ``finally``, a key before the work, and keys that tell of no work."""
    assert agree(
        """
        import torch
        import torch.distributed as dist

        def outcome(store: dist.TCPStore, rank, path, rows):
            if rank == 0:
                try:
                    torch.save(rows, path)
                    verdict = "ok"
                except Exception as error:
                    verdict = str(error)
                store.set("built", verdict)
            if store.get("built") != b"ok":
                raise RuntimeError("not built")

        def either(store: dist.TCPStore, rank, path, rows):
            if rank == 0:
                try:
                    torch.save(rows, path)
                finally:
                    store.set("built", "done")
            store.wait(["built"])

        def address(store: dist.TCPStore, rank, port):
            if rank == 0:
                store.set("port", str(port))
                store.set("host", "a")
            return store.get("port")

        def nobody_waits(store: dist.TCPStore, rank, path, rows):
            if rank == 0:
                torch.save(rows, path)
                store.set("built", "yes")
        """,
        "SPG208",
    )


def test_a_writer_of_tensorboard_asks_nobody() -> None:
    """A `SummaryWriter` opens a file on this machine, as `os.makedirs` and `open` do; `wandb.init` asks a server."""
    assert agree(
        """
        import os

        import tensorboardX
        import torch.distributed as dist
        import wandb
        from torch.utils.tensorboard import SummaryWriter

        class Logger:
            def __init__(self, folder):
                self.writer = tensorboardX.SummaryWriter(logdir=folder)

        def a_file(folder):
            if dist.get_rank() == 0:
                os.makedirs(folder, exist_ok=True)
                writer = SummaryWriter(log_dir=folder)
            dist.barrier()

        def in_a_class(folder):
            if dist.get_rank() == 0:
                writer = Logger(folder)
            dist.barrier()

        def a_server(name):
            if dist.get_rank() == 0:
                wandb.init(project=name)  # SPG208
            dist.barrier()
        """,
        "SPG208",
    )


def test_runs_that_are_begun_where_there_is_none() -> None:
    """``wandb.run`` is None before the first run; the module may be kept in a field."""
    assert agree(
        """
        import torch.distributed as dist

        class Logger:
            def __init__(self, config):
                try:
                    import wandb
                except ImportError:
                    raise ImportError("wandb")
                self.wandb = wandb
                self.options = dict(config=config)
                self.setup()

            def setup(self):
                if dist.get_rank() == 0:
                    if self.wandb.run is None:
                        self.wandb.init(**self.options)  # SPG208

        def main(config):
            Logger(config)
            dist.barrier()
        """,
        "SPG208",
    )
