import signal
import sys

import deepspeed
import torch.distributed as dist


class Saver:
    def __init__(self, engine, folder):
        self.engine, self.folder = engine, folder

    def save_checkpoint(self, step):
        self.engine.save_checkpoint(self.folder, tag=f"step{step}", client_state={"step": step})


class Interrupt:
    def __init__(self, saver):
        self.saver = saver
        self.current_step = 0
        self.triggered = False
        signal.signal(signal.SIGINT, self.trigger)
        signal.signal(signal.SIGTERM, self.trigger)

    def trigger(self, signum, frame):
        if self.triggered:
            return
        self.triggered = True
        if dist.get_rank() == 0:
            print(f"signal {signum}: saving step {self.current_step}")
        self.saver.save_checkpoint(self.current_step)
        dist.barrier()
        sys.exit(0)


def train(config, model, loader, folder):
    engine, _, _, _ = deepspeed.initialize(model=model, config=config)
    saver = Saver(engine, folder)
    interrupt = Interrupt(saver)
    for step, batch in enumerate(loader):
        interrupt.current_step = step
        loss = engine(batch)
        engine.backward(loss)
        engine.step()
        if step % 1000 == 0:
            saver.save_checkpoint(step)
