import os

import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import FullStateDictConfig, StateDictType
from transformers import Trainer
from transformers.utils import logging

logger = logging.get_logger(__name__)
KEEP = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)


class ShardedTrainer(Trainer):
    def create_model_card(self, *args, **kwargs):
        return None

    def full_state(self):
        with FSDP.state_dict_type(self.model_wrapped, StateDictType.FULL_STATE_DICT, KEEP):
            return self.model_wrapped.state_dict()

    def save_model(self, output_dir=None, _internal_call=False):
        output_dir = output_dir or self.args.output_dir
        if not self.is_world_process_zero():
            return
        os.makedirs(output_dir, exist_ok=True)
        logger.info("Saving model to %s", output_dir)
        state = self.full_state()
        torch.save(state, os.path.join(output_dir, "pytorch_model.bin"))
        torch.save(self.args, os.path.join(output_dir, "training_args.bin"))
        if self.processing_class is not None:
            self.processing_class.save_pretrained(output_dir)


def run(model, args, train_set, eval_set, tokenizer):
    trainer = ShardedTrainer(
        model=model, args=args, train_dataset=train_set, eval_dataset=eval_set, processing_class=tokenizer
    )
    trainer.train()
    trainer.save_model(os.path.join(args.output_dir, "final"))
    return trainer.evaluate()
