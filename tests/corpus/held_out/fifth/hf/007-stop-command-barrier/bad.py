import json
import logging

import lightning.pytorch as pl
import zmq
from lightning.pytorch.callbacks import Callback, ModelCheckpoint

log = logging.getLogger("controller")


class RemoteController(Callback):
    """Lets a GUI stop the run or change the learning rate over a ZMQ socket."""

    def __init__(self, address: str = "tcp://127.0.0.1:9000", poll_ms: int = 10):
        super().__init__()
        self.address = address
        self.poll_ms = poll_ms
        self._socket = None

    def setup(self, trainer, pl_module, stage):
        if trainer.is_global_zero and self._socket is None:
            self._socket = zmq.Context.instance().socket(zmq.SUB)
            self._socket.subscribe("")
            self._socket.connect(self.address)

    def _receive(self):
        if self._socket is None or not self._socket.poll(self.poll_ms):
            return None
        return json.loads(self._socket.recv_string())

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if trainer.is_global_zero:
            message = self._receive()
            if message is not None and message.get("command") == "stop":
                log.info("stop requested after batch %d", batch_idx)
                trainer.should_stop = True
        trainer.strategy.barrier()

    def teardown(self, trainer, pl_module, stage):
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def train(module: pl.LightningModule, data: pl.LightningDataModule, out_dir: str, devices: int):
    trainer = pl.Trainer(
        accelerator="gpu",
        devices=devices,
        strategy="ddp",
        max_epochs=200,
        min_epochs=None,
        default_root_dir=out_dir,
        callbacks=[
            ModelCheckpoint(dirpath=out_dir, save_last=True),
            RemoteController(),
        ],
    )
    trainer.fit(module, datamodule=data)
    return trainer.checkpoint_callback.best_model_path
