import logging
import os
import tempfile
from typing import Optional

import torch
from composer import Trainer
from composer.core import Callback, State
from composer.loggers import Logger
from composer.utils import dist, get_device

log = logging.getLogger(__name__)


class CheckpointFetcher:
    def __init__(self, store, node_dir: Optional[str] = None):
        self.store = store
        self.node_dir = node_dir or os.path.join(tempfile.gettempdir(), "resume")

    def fetch(self, object_name: str) -> str:
        target = os.path.join(self.node_dir, os.path.basename(object_name))
        error: Optional[Exception] = None
        try:
            if dist.get_local_rank() == 0:
                os.makedirs(self.node_dir, exist_ok=True)
                self.store.download_object(object_name, target, overwrite=True)
        except Exception as exc:
            log.exception("download of %s failed", object_name)
            error = exc

        ok = get_device(None).tensor_to_device(torch.tensor([int(error is None)], dtype=torch.int32))
        dist.all_reduce(ok, reduce_operation="MIN")
        if ok.item() == 0:
            raise RuntimeError(f"could not fetch {object_name} on all nodes") from error
        return target


class FreeSpace(Callback):
    """Logs the node's free disk space once an epoch."""

    def __init__(self, path: str):
        self.path = path

    def epoch_end(self, state: State, logger: Logger) -> None:
        stat = os.statvfs(self.path)
        free = torch.tensor([stat.f_bavail * stat.f_frsize / 2**30])
        free = get_device(None).tensor_to_device(free)
        dist.all_reduce(free, reduce_operation="MIN")
        if dist.get_global_rank() == 0:
            logger.log_metrics({"disk/free_gib": free.item()})


def train(model, train_loader, eval_loader, store, resume: Optional[str], out: str) -> None:
    dist.initialize_dist(get_device(None), timeout=1800)
    load_path = CheckpointFetcher(store).fetch(resume) if resume else None
    trainer = Trainer(
        model=model,
        train_dataloader=train_loader,
        eval_dataloader=eval_loader,
        max_duration="3ep",
        load_path=load_path,
        save_folder=out,
        save_interval="1ep",
        callbacks=[FreeSpace(tempfile.gettempdir())],
    )
    trainer.fit()
    trainer.close()
