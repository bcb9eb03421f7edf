import os

import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import FullStateDictConfig, StateDictType
from transformers import Trainer

GATHER = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)


class ShardAwareTrainer(Trainer):
    def gathered(self):
        with FSDP.state_dict_type(self.model_wrapped, StateDictType.FULL_STATE_DICT, GATHER):
            return self.model_wrapped.state_dict()

    def export(self, folder):
        state = self.gathered()
        if not self.is_world_process_zero():
            return
        os.makedirs(folder, exist_ok=True)
        torch.save(state, os.path.join(folder, "pytorch_model.bin"))


def run(model, args, data, collator, folder):
    trainer = ShardAwareTrainer(model=model, args=args, train_dataset=data, data_collator=collator)
    result = trainer.train()
    trainer.export(folder)
    return result.metrics
