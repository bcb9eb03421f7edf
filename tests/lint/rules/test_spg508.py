"""SPG508: a tracker's run that every rank opens."""

from __future__ import annotations

from tests.lint.rules.marked import agree, reported

CODE = "SPG508"


def test_runs_that_every_rank_opens() -> None:
    """W&B, MLflow as a context, TensorBoard, in a class, in a helper, before the group is made."""
    assert agree(
        """
        import mlflow
        import torch.distributed as dist
        import wandb
        from torch.utils.tensorboard import SummaryWriter

        def plain(config):
            dist.init_process_group("gloo")
            wandb.init(project="x", config=config)  # SPG508
            dist.barrier()

        def context(steps):
            with mlflow.start_run():  # SPG508
                dist.init_process_group("gloo")
                dist.barrier()

        def written(folder):
            dist.init_process_group("gloo")
            writer = SummaryWriter(folder)  # SPG508
            if dist.get_rank() == 0:
                writer.add_scalar("loss", 1.0, 0)

        class Tracker:
            def __init__(self, args):
                wandb.init(project=args.project, group=args.group, name=args.name)  # SPG508

        def through(args):
            dist.init_process_group("gloo")
            tracker = Tracker(args)
            dist.barrier()
        """,
        CODE,
    )


def test_runs_that_one_rank_opens() -> None:
    """Under a test, through a flag that is handed on, a decorator, or a name that tells."""
    assert agree(
        """
        import torch.distributed as dist
        import wandb
        from accelerate import Accelerator
        from torch.utils.tensorboard import SummaryWriter

        def plain(config):
            dist.init_process_group("gloo")
            if dist.get_rank() == 0:
                wandb.init(project="x", config=config)
            dist.barrier()

        def early(config):
            dist.init_process_group("gloo")
            dist.barrier()
            if dist.get_rank() != 0:
                return
            wandb.init(project="x")

        class Tracker:
            def __init__(self, enabled):
                self.run = wandb.init(project="x") if enabled else None

        def flagged():
            dist.init_process_group("gloo")
            Tracker(dist.get_rank() == 0)
            dist.barrier()

        def named(args):
            dist.init_process_group("gloo")
            if args.is_writer:
                SummaryWriter()
            dist.barrier()

        def trackers():
            accelerator = Accelerator(log_with="wandb")
            accelerator.init_trackers("x")
            accelerator.wait_for_everyone()
        """,
        CODE,
    )


def test_runs_that_are_meant_for_every_rank() -> None:
    """Told apart by rank, by mode, by folder; in one group; shared; in code that communicates with nobody."""
    assert agree(
        """
        import os
        import torch.distributed as dist
        import wandb
        from torch.utils.tensorboard import SummaryWriter

        def moded():
            dist.init_process_group("gloo")
            wandb.init(project="x", mode="online" if dist.get_rank() == 0 else "disabled")

        def named(args):
            dist.init_process_group("gloo")
            wandb.init(project="x", group=args.group, name=f"rank-{dist.get_rank()}")
            SummaryWriter(os.path.join(args.folder, os.environ["RANK"]))

        def grouped(args):
            dist.init_process_group("gloo")
            wandb.init(project="x", group=args.group)

        def shared(args):
            dist.init_process_group("gloo")
            wandb.init(id=args.run, settings=wandb.Settings(mode="shared"))

        def off():
            dist.init_process_group("gloo")
            wandb.init(mode="disabled")

        def alone():
            wandb.init(project="x")
        """,
        CODE,
    )


def test_only_possible_where_a_trainer_communicates() -> None:
    """A script around a framework's trainer often runs on one device."""
    script = """
    import wandb
    from transformers import Trainer

    def main(model):
        wandb.init(project="x")
        Trainer(model).train()
    """
    assert reported(script, CODE) == []
