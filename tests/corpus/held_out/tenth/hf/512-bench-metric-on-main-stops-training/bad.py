import torch.distributed as dist
from transformers import Trainer, TrainerCallback


class BenchAndStop(TrainerCallback):
    def __init__(self, run_bench, patience=3):
        self.run_bench, self.patience = run_bench, patience
        self.best, self.bad_rounds = float("-inf"), 0

    def on_evaluate(self, args, state, control, metrics=None, model=None, **kwargs):
        dist.barrier()
        if state.is_world_process_zero:
            metrics["bench_average"] = self.run_bench(args.output_dir, state.global_step)
        value = metrics.get("bench_average")
        if value is None:
            return control
        if value > self.best:
            self.best, self.bad_rounds = value, 0
        else:
            self.bad_rounds += 1
        if self.bad_rounds >= self.patience:
            control.should_training_stop = True
        return control


def start(model, args, data, run_bench):
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=data["train"],
        eval_dataset=data["val"],
        callbacks=[BenchAndStop(run_bench)],
    )
    trainer.train()
