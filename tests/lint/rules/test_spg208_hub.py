"""SPG208: repositories that one rank makes on a hub, and what it sends there, while the others wait."""

from __future__ import annotations

import textwrap

from spmdguard_lint.config import Config
from spmdguard_lint.engine import StandardInput, lint

from tests.lint.rules.marked import agree, expected


def test_a_hub_asked_by_one_rank() -> None:
    """A repository is made, or a folder sent, and the others are in the next collective: possible, as requests are."""
    for asking in (
        "HfApi().create_repo(name, exist_ok=True)",
        "create_repo(name, exist_ok=True, token=token)",
        "huggingface_hub.Repository(folder, clone_from=name)",
        "HfApi(token=token).upload_folder(folder_path=folder, repo_id=name)",
        "model.push_to_hub(name)",
    ):
        source = f"""
            import huggingface_hub
            import torch.distributed as dist
            from accelerate import Accelerator
            from huggingface_hub import HfApi, create_repo
            from torch.nn.parallel import DistributedDataParallel

            def prepared(accelerator: Accelerator, model, name, folder, token):
                if accelerator.is_main_process:
                    {asking}  # SPG208
                accelerator.wait_for_everyone()

            def told(accelerator: Accelerator, model, name, folder, token):
                problem = [None]
                if dist.get_rank() == 0:
                    try:
                        {asking}
                    except Exception as error:
                        problem = [repr(error)]
                dist.broadcast_object_list(problem, src=0)

            def at_the_end(accelerator: Accelerator, model, name, folder, token):
                accelerator.wait_for_everyone()
                if accelerator.is_main_process:
                    {asking}

            def far_behind(net, model, batches, name, folder, token):
                net = DistributedDataParallel(net)
                if dist.get_rank() == 0:
                    {asking}
                for batch in batches:
                    net(batch).sum().backward()
            """
        content = textwrap.dedent(source).encode()
        config = Config(select=("SPG208",), min_certainty="possible")
        found = lint([], config, stdin=StandardInput(content, "snippet.py")).findings
        assert expected(source) == [(one.site.start.row, one.code) for one in found]
        assert agree(source.replace("# SPG208", ""), "SPG208")  # by default it says nothing
