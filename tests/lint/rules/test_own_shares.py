"""SPG107: tensors and lists that a rank makes as large as its own share, or as what it has generated."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_what_a_model_has_generated() -> None:
    """Answers are as wide as the longest one of the rank; padded across processes or to a fixed width they are not."""
    assert agree(
        """
        import torch
        import torch.distributed as dist
        from torch.nn import functional as F
        from accelerate import Accelerator
        from transformers import AutoModelForSeq2SeqLM

        def together(loader, name, pad):
            accelerator = Accelerator()
            model, loader = accelerator.prepare(AutoModelForSeq2SeqLM.from_pretrained(name), loader)
            for batch in loader:
                answers = accelerator.unwrap_model(model).generate(batch["ids"], max_length=100)
                answers, labels = accelerator.gather_for_metrics((answers, batch["labels"]))  # SPG107

        def alone(loader, model):
            accelerator = Accelerator()
            for batch in loader:
                made = model.module.generate(batch["ids"], max_new_tokens=32)
                made = made[:, batch["ids"].shape[1]:].contiguous()
                yield accelerator.gather(made)  # SPG107

        def by_hand(model, ids):
            tokens = model.generate(ids)
            parts = [torch.empty_like(tokens) for _ in range(dist.get_world_size())]
            dist.all_gather(parts, tokens)  # SPG107

        def padded(loader, model, pad):
            accelerator = Accelerator()
            for batch in loader:
                answers = model.generate(batch["ids"], max_length=100)
                answers = accelerator.pad_across_processes(answers, dim=1, pad_index=pad)
                yield accelerator.gather_for_metrics((answers, batch["labels"]))

        def to_one_width(loader, model, pad):
            accelerator = Accelerator()
            for batch in loader:
                answers = model.generate(batch["ids"], max_length=100)
                answers = F.pad(answers, (0, 100 - answers.shape[1]), value=pad)
                yield accelerator.gather(answers)

        def as_objects(model, ids, tokenizer):
            texts = tokenizer.batch_decode(model.generate(ids))
            everything = [None] * dist.get_world_size()
            dist.all_gather_object(everything, texts)
            return everything
        """,
        "SPG107",
    )


SHARES = """
import torch
import torch.distributed as dist

class Shares:
    def __init__(self, params):
        self.params = list(params)
        self.rank, self.world = dist.get_rank(), dist.get_world_size()

    def owned(self, rank):
        return range(rank, len(self.params), self.world)

    def exchange(self):
        parts = []
        for index in self.owned(self.rank):
            parts.append(self.params[index].grad.flatten())
        mine = torch.cat(parts)
        for src in range(self.world):
            {make}
            dist.broadcast(flat, src=src){mark}
"""


def test_buffers_of_ranks_that_receive() -> None:
    """Sized like what the rank itself would send, in several spellings; sized for the sender it is right."""
    for make in (
        "flat = mine if src == self.rank else torch.empty_like(mine)",
        "flat = torch.zeros_like(mine) if self.rank != src else mine",
        "flat = mine if src == self.rank else mine.new_empty(mine.shape)",
        "flat = mine if src == self.rank else torch.empty(mine.numel(), device=mine.device)",
    ):
        assert agree(SHARES.format(make=make, mark="  # SPG107"), "SPG107")
    for make in (
        "n = sum(self.params[i].numel() for i in self.owned(src))\n"
        "            flat = mine if src == self.rank else torch.empty(n)",
        "flat = self.params[0].grad if src == self.rank else torch.empty_like(self.params[0].grad)",
    ):
        assert agree(SHARES.format(make=make, mark=""), "SPG107")


def test_placeholders_for_what_was_gathered() -> None:
    """The main rank sends an entry for each item of all ranks; the others must expect as many."""
    assert agree(
        """
        import torch.distributed as dist
        from accelerate import Accelerator
        from accelerate.utils import broadcast_object_list, gather_object

        def too_short(prompts, server):
            accelerator = Accelerator()
            everything = gather_object(prompts)
            if accelerator.is_main_process:
                answers = server.complete(everything)
            else:
                answers = [None] * len(prompts)
            broadcast_object_list(answers, from_process=0)  # SPG107
            return answers

        def in_one_line(rows, server):
            accelerator = Accelerator()
            prompts = [row["prompt"] for row in rows]
            everything = gather_object(prompts)
            size = len(prompts)
            answers = server(everything) if accelerator.is_main_process else [None for _ in prompts]
            answers = [None] * size if not accelerator.is_main_process else server(everything)
            broadcast_object_list(answers)  # SPG107
            return answers

        def long_enough(prompts, server):
            accelerator = Accelerator()
            everything = gather_object(prompts)
            if accelerator.is_main_process:
                answers = server.complete(everything)
            else:
                answers = [None] * len(everything)
            broadcast_object_list(answers, from_process=0)
            return answers

        def of_the_same_prompts(prompts, server):
            accelerator = Accelerator()
            if accelerator.is_main_process:
                answers = server.complete(prompts)
            else:
                answers = [None] * len(prompts)
            broadcast_object_list(answers, from_process=0)
            return answers

        def cut_to_one_share(prompts, server):
            accelerator = Accelerator()
            everything = gather_object(prompts)
            if accelerator.is_main_process:
                answers = server.complete(everything)[: len(prompts)]
            else:
                answers = [None] * len(prompts)
            broadcast_object_list(answers, from_process=0)
            return answers
        """,
        "SPG107",
    )
