import os
import os.path as osp

import torch
from mmengine.dist import is_main_process
from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from mmengine.registry import HOOKS
from torch.distributed.optim import ZeroRedundancyOptimizer


@HOOKS.register_module()
class LeanCheckpointHook(Hook):
    """Writes weights and optimizer of the last epochs; replaces the default hook in our configs."""

    priority = "VERY_LOW"

    def __init__(self, interval=1, out_dir=None, save_optimizer=True, keep=3):
        self.interval = interval
        self.out_dir = out_dir
        self.save_optimizer = save_optimizer
        self.keep = keep
        self.written = []

    def before_train(self, runner):
        self.out_dir = self.out_dir or runner.work_dir

    def after_train_epoch(self, runner):
        if not self.every_n_epochs(runner, self.interval):
            return
        path = osp.join(self.out_dir, f"lean_epoch_{runner.epoch + 1}.pth")
        runner.logger.info(f"Saving {path}")
        if is_main_process():
            self._write(runner, path)

    def _optimizer_state(self, runner):
        optimizer = runner.optim_wrapper.optimizer
        if isinstance(optimizer, ZeroRedundancyOptimizer):
            optimizer.consolidate_state_dict(to=0)
        return optimizer.state_dict()

    def _write(self, runner, path):
        model = runner.model.module if is_model_wrapper(runner.model) else runner.model
        payload = {"meta": {"epoch": runner.epoch + 1, "iter": runner.iter}, "state_dict": model.state_dict()}
        if self.save_optimizer:
            payload["optimizer"] = self._optimizer_state(runner)
        torch.save(payload, path)
        self.written.append(path)
        for old in self.written[:-self.keep]:
            os.remove(old)
        self.written = self.written[-self.keep:]
