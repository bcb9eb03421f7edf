"""Calls by which each rank says whether gradients are reduced, how far a loader is skipped, where clipping meets."""

from __future__ import annotations

from tests.lint.rules.marked import agree

DATA = ("SPG101", "SPG104", "SPG305", "SPG401")


def test_boundary_from_own_data() -> None:
    """DeepSpeed's boundary, Fabric's and FSDP2's switch, set by a count of this rank's own tokens."""
    assert agree(
        """
        import deepspeed
        from lightning.fabric import Fabric
        from torch.distributed.fsdp import fully_shard

        class Budget:
            def __init__(self, goal):
                self.goal, self.seen = goal, 0

            def reached(self, mask):
                self.seen += int(mask.sum())
                if self.seen < self.goal:
                    return False
                self.seen = 0
                return True

        def by_engine(net, config, data):
            engine, _, loader, _ = deepspeed.initialize(model=net, config=config, training_data=data)
            budget = Budget(4096)
            for batch in loader:
                last = budget.reached(batch["mask"])
                engine.set_gradient_accumulation_boundary(last)  # SPG305
                engine.backward(engine(batch["x"]))
                engine.step()

        def by_fabric(net, data):
            fabric = Fabric(devices=2)
            net = fabric.setup(net)
            for batch in fabric.setup_dataloaders(data):
                with fabric.no_backward_sync(net, enabled=bool(batch["short"].all())):  # SPG305
                    fabric.backward(net(batch["x"]))

        def by_shards(net, engine_data, config):
            engine, _, loader, _ = deepspeed.initialize(model=net, config=config)
            net = fully_shard(net)
            for batch in loader:
                net.set_requires_gradient_sync(batch.sum().item() > 3)  # SPG305
        """,
        *DATA,
    )


def test_boundary_that_all_share() -> None:
    """A count of steps, a reduced count, a constant."""
    assert agree(
        """
        import deepspeed
        import torch.distributed as dist
        from lightning.fabric import Fabric

        def by_step(net, config, data):
            engine, _, loader, _ = deepspeed.initialize(model=net, config=config, training_data=data)
            for step, batch in enumerate(loader):
                engine.set_gradient_accumulation_boundary(is_boundary=step % 4 == 3)
                engine.backward(engine(batch["x"]))
                engine.step()

        def by_sum(net, config, data):
            engine, _, loader, _ = deepspeed.initialize(model=net, config=config, training_data=data)
            seen = 0
            for batch in loader:
                count = batch["mask"].sum()
                dist.all_reduce(count)
                seen += int(count)
                engine.set_gradient_accumulation_boundary(seen > 4096)
                engine.backward(engine(batch["x"]))
                engine.step()

        def by_fabric(net, data):
            fabric = Fabric(devices=2)
            net = fabric.setup(net)
            for step, batch in enumerate(fabric.setup_dataloaders(data)):
                with fabric.no_backward_sync(net, enabled=step % 8 != 7):
                    fabric.backward(net(batch["x"]))
        """,
        *DATA,
    )


def test_clipping_of_shards_under_own_data() -> None:
    """Where the project shards by Accelerate's plugin, the norm is a sum over the ranks."""
    assert agree(
        """
        from accelerate import Accelerator, FullyShardedDataParallelPlugin

        def train(net, loader, limit):
            accelerator = Accelerator(fsdp_plugin=FullyShardedDataParallelPlugin())
            net, loader = accelerator.prepare(net, loader)
            for batch in loader:
                loss = net(batch)
                accelerator.backward(loss)
                if loss.item() > limit:
                    accelerator.clip_grad_norm_(net.parameters(), 1.0)  # SPG305
        """,
        *DATA,
    )


def test_clipping_of_replicas_under_own_data() -> None:
    """With whole parameters the norm is known to each rank."""
    assert agree(
        """
        from accelerate import Accelerator

        def train(net, loader, limit):
            accelerator = Accelerator()
            net, loader = accelerator.prepare(net, loader)
            for batch in loader:
                loss = net(batch)
                accelerator.backward(loss)
                if loss.item() > limit:
                    accelerator.clip_grad_norm_(net.parameters(), 1.0)
        """,
        *DATA,
    )


def test_batches_skipped_by_own_progress() -> None:
    """A loader that each rank resumes where its own file says; by a number that all read it is right."""
    assert agree(
        """
        from pathlib import Path
        from accelerate import Accelerator, skip_first_batches
        from accelerate.utils import broadcast_object_list

        def resume(net, loader, folder):
            accelerator = Accelerator()
            net, loader = accelerator.prepare(net, loader)
            done = int(Path(folder, f"done-{accelerator.process_index}").read_text())
            for batch in accelerator.skip_first_batches(loader, done):  # SPG401
                accelerator.backward(net(batch))

        def by_function(net, loader, folder):
            accelerator = Accelerator()
            net, loader = accelerator.prepare(net, loader)
            done = int(Path(folder, f"done-{accelerator.process_index}").read_text())
            rest = skip_first_batches(loader, num_batches=done)
            for step, batch in enumerate(rest):  # SPG401
                accelerator.backward(net(batch))

        def agreed(net, loader, folder):
            accelerator = Accelerator()
            net, loader = accelerator.prepare(net, loader)
            done = int(Path(folder, f"done-{accelerator.process_index}").read_text())
            done = broadcast_object_list([done])[0]
            for batch in accelerator.skip_first_batches(loader, done):
                accelerator.backward(net(batch))
        """,
        *DATA,
    )


def test_the_state_of_what_was_prepared_beside_a_sharded_model() -> None:
    """An optimizer or a scheduler tells its own state without a collective."""
    assert agree(
        """
        from accelerate import Accelerator, FullyShardedDataParallelPlugin

        def main(model, optimizer, scheduler):
            accelerator = Accelerator(fsdp_plugin=FullyShardedDataParallelPlugin())
            model, optimizer, scheduler = accelerator.prepare(model, optimizer, scheduler)
            if accelerator.is_main_process:
                kept = [optimizer.state_dict(), scheduler.state_dict()]
                kept.append(model.state_dict())  # SPG101
            return kept
        """,
        "SPG101",
        "SPG104",
    )
