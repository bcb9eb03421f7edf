import logging
import sys

from tqdm.auto import tqdm
from transformers import Trainer, TrainerCallback, TrainingArguments
from transformers.utils import logging as hf_logging

log = logging.getLogger("finetune")


class Bar(TrainerCallback):
    def __init__(self):
        self.bar = None

    def on_train_begin(self, args, state, control, **kwargs):
        if state.is_world_process_zero:
            self.bar = tqdm(total=state.max_steps)

    def on_step_end(self, args, state, control, **kwargs):
        if self.bar is not None:
            self.bar.update(1)

    def on_train_end(self, args, state, control, **kwargs):
        if self.bar is not None:
            self.bar.close()


def configure(args):
    level = logging.INFO if args.process_index == 0 else logging.ERROR
    logging.basicConfig(stream=sys.stderr, level=level)
    hf_logging.set_verbosity(level)
    if args.local_rank > 0:
        hf_logging.disable_progress_bar()


def main(model, train, dev):
    args = TrainingArguments("out", eval_strategy="epoch", save_strategy="epoch", disable_tqdm=True)
    configure(args)
    trainer = Trainer(model=model, args=args, train_dataset=train, eval_dataset=dev, callbacks=[Bar()])
    trainer.train()
    metrics = trainer.evaluate()
    trainer.save_model()
    log.info("%s", metrics)
