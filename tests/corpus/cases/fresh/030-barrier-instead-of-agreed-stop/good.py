import json

import lightning.pytorch as pl
import zmq


class RemoteControl(pl.Callback):
    """Stops the training when the GUI says so."""

    def __init__(self, address):
        self.address = address
        self.socket = None

    def on_train_start(self, trainer, module):
        if trainer.is_global_zero:
            self.socket = zmq.Context.instance().socket(zmq.SUB)
            self.socket.subscribe("")
            self.socket.connect(self.address)

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if trainer.is_global_zero and self.socket.poll(0):
            message = json.loads(self.socket.recv_string())
            if message.get("command") == "stop":
                trainer.should_stop = True
        trainer.should_stop = trainer.strategy.reduce_boolean_decision(trainer.should_stop, all=False)

    def on_train_end(self, trainer, module):
        if self.socket is not None:
            self.socket.close()


def run(module, data, address):
    trainer = pl.Trainer(devices=4, strategy="ddp", max_epochs=200, callbacks=[RemoteControl(address)])
    trainer.fit(module, data)
