"""SPG506: checkpoints to go on from that some ranks are given and others are not."""

from __future__ import annotations

from tests.lint.rules.marked import agree

IMPORTS = """
            import os
            import glob
            import deepspeed
            import lightning as L
            import torch.distributed as dist
            from accelerate import Accelerator
            from accelerate.utils import broadcast_object_list
            from transformers import Trainer
            from transformers.trainer_utils import get_last_checkpoint
"""


def test_found_on_one_rank_alone() -> None:
    """One rank looks for the last checkpoint; the call takes it on that rank, and None on the others."""
    for call in (
        "trainer.train(resume_from_checkpoint=last)",
        "trainer.train(last)",
        "light.fit(model, loader, ckpt_path=last)",
        "light.test(model, loader, last)",
        "accelerator.load_state(last)",
        "engine.load_checkpoint(out, tag=last)",
    ):
        assert agree(
            f"""{IMPORTS}
            def find(trainer: Trainer, out):
                if trainer.is_world_process_zero():
                    return get_last_checkpoint(out)
                return None

            def in_place(
                trainer: Trainer, light: L.Trainer, accelerator: Accelerator, out, model, loader
            ):
                engine, *_ = deepspeed.initialize(model=model)
                last = None
                if dist.get_rank() == 0:
                    last = get_last_checkpoint(out)
                {call}  # SPG506

            def by_helper(
                trainer: Trainer, light: L.Trainer, accelerator: Accelerator, out, model, loader
            ):
                engine, *_ = deepspeed.initialize(model=model)
                last = find(trainer, out)
                {call}  # SPG506

            def told(
                trainer: Trainer, light: L.Trainer, accelerator: Accelerator, out, model, loader
            ):
                engine, *_ = deepspeed.initialize(model=model)
                found = [find(trainer, out)]
                broadcast_object_list(found, from_process=0)
                last = found[0]
                {call}

            def each_looks(
                trainer: Trainer, light: L.Trainer, accelerator: Accelerator, out, model, loader
            ):
                engine, *_ = deepspeed.initialize(model=model)
                last = get_last_checkpoint(out) if os.path.isdir(out) else None
                {call}
            """,
            "SPG506",
        )


def test_a_switch_that_ranks_have_set_differently() -> None:
    """`True` on one rank; a switch of the settings, and a folder for each host are right."""
    assert agree(
        f"""{IMPORTS}
            def switched(trainer: Trainer):
                trainer.train(resume_from_checkpoint=dist.get_rank() == 0)  # SPG506

            def setting(trainer: Trainer, args):
                trainer.train(resume_from_checkpoint=args.resume)

            def on_its_host(accelerator: Accelerator, out):
                accelerator.load_state(os.path.join(out, f"host{{dist.get_rank() // 8}}"))
        """,
        "SPG506",
    )
