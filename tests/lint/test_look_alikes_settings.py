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
