import logging

from accelerate.utils import broadcast_object_list, gather_object
from trl import GRPOConfig, GRPOTrainer

logger = logging.getLogger(__name__)


def _server_generate(trainer, prompts):
    """Main process asks the server for all ranks; each rank gets its slice back."""
    accelerator = trainer.accelerator
    everyone = gather_object([(accelerator.process_index, prompts)])
    payload = None
    if accelerator.is_main_process:
        flat = [p for _, part in sorted(everyone, key=lambda e: e[0]) for p in part]
        completions = []
        if flat:
            completions = trainer.vllm_client.generate(
                prompts=flat,
                n=1,
                temperature=trainer.temperature,
                max_tokens=trainer.max_completion_length,
            )
        payload = completions
    box = [payload]
    broadcast_object_list(box, from_process=0)
    counts = {index: len(part) for index, part in everyone}
    start = sum(counts[i] for i in range(accelerator.process_index))
    return box[0][start : start + len(prompts)]


def generate_completions(trainer, prompts):
    completions = _server_generate(trainer, prompts)
    if len(completions) != len(prompts):
        raise RuntimeError(f"{len(completions)} completions for {len(prompts)} prompts")
    return completions


class ToolEnvTrainer(GRPOTrainer):
    """Multi-turn: after each turn only the unfinished episodes are continued."""

    max_turns = 4

    def play(self, episodes):
        for turn in range(self.max_turns):
            open_ = [e for e in episodes if not e.done]
            outputs = generate_completions(self, [e.prompt() for e in open_])
            for episode, tokens in zip(open_, outputs):
                text = self.processing_class.decode(tokens, skip_special_tokens=True)
                episode.step(text)
            logger.debug("turn %d: %d open episodes", turn, len(open_))
        return [e.transcript for e in episodes]


def make_trainer(model_name, dataset, reward_fn):
    args = GRPOConfig(
        output_dir="runs/toolenv",
        per_device_train_batch_size=4,
        num_generations=8,
        use_vllm=True,
        vllm_mode="server",
        max_completion_length=512,
    )
    return ToolEnvTrainer(model=model_name, reward_funcs=reward_fn, args=args, train_dataset=dataset)
