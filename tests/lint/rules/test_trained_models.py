"""The trainer's model, in callbacks and subclasses of the trainer: where it is sharded it communicates as it runs."""

from __future__ import annotations

from tests.lint.rules.marked import agree

RULES = ("SPG101", "SPG102", "SPG104")
PROGRAM = """
        from transformers import AutoModelForCausalLM, Trainer, TrainerCallback, TrainingArguments

        {settings}

        class Sampler(TrainerCallback):
            def __init__(self, prompts, other):
                self.prompts, self.other = prompts, other

            def on_evaluate(self, args, state, control, model=None, **kwargs):
                if not state.is_world_process_zero:
                    return{left}
                for prompt in self.prompts:
                    print(model.generate(prompt))

            def on_log(self, args, state, control, **kwargs):
                if state.is_world_process_zero:
                    kwargs["model"](self.prompts){found}
                    kwargs["metrics"](self.prompts)

            def on_epoch_end(self, args, state, control, **kwargs):
                model = kwargs.get("model")
                if args.should_save:
                    self.sample(model){through}

            def sample(self, model):
                return model.generate(self.prompts)

            def on_save(self, args, state, control, model=None, **kwargs):
                if state.is_world_process_zero:
                    model.save_pretrained(args.output_dir)
                    print(model.config, sum(1 for p in model.parameters()))

            def on_train_end(self, args, state, control, **kwargs):
                if state.is_world_process_zero:
                    self.other.generate(self.prompts)
                    AutoModelForCausalLM.from_pretrained(args.output_dir).generate(self.prompts)

        class Tuner(Trainer):
            def evaluate(self, *args, **kwargs):
                metrics = super().evaluate(*args, **kwargs)
                if self.is_world_process_zero():
                    self.model.generate(self.prompts){found}
                return metrics

        class OnAll(TrainerCallback):
            def on_evaluate(self, args, state, control, model=None, **kwargs):
                text = model.generate("x", synced_gpus=True)
                if state.is_world_process_zero:
                    print(text)
"""


def test_a_sharded_model_on_one_rank() -> None:
    """ZeRO-3 in a dict, by a file or an argument, and FSDP in the arguments."""
    for settings in (
        'CONFIG = {{"zero_optimization": {{"stage": 3, "overlap_comm": True}}}}',
        'ARGS = TrainingArguments(output_dir="x", deepspeed="configs/ds_zero3_bf16.json")',
        'ARGS = TrainingArguments(output_dir="x", fsdp="full_shard auto_wrap")',
        'ARGS = TrainingArguments(output_dir="x", fsdp=["full_shard"])',
    ):
        program = PROGRAM.format(
            settings=settings.format(), left="  # SPG102", found="  # SPG101", through="  # SPG104"
        )
        assert agree(program, *RULES)


def test_a_whole_model_on_one_rank() -> None:
    """Without sharding, ZeRO-2, and where sharding is switched off."""
    for settings in (
        'ARGS = TrainingArguments(output_dir="x")',
        'CONFIG = {{"zero_optimization": {{"stage": 2}}}}',
        'ARGS = TrainingArguments(output_dir="x", deepspeed="configs/zero2.json", fsdp="")',
    ):
        assert agree(PROGRAM.format(settings=settings.format(), left="", found="", through=""), *RULES)
