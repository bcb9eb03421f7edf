import logging
import platform

import torch
from accelerate import Accelerator, PartialState
from torch.utils.data import DataLoader


class OrderedLogger:
    def __init__(self, name: str, level: int = logging.INFO):
        self.log = logging.getLogger(name)
        self.log.setLevel(level)

    def info(self, msg: str, *args, in_order: bool = False, main_only: bool = True):
        if not self.log.isEnabledFor(logging.INFO):
            return
        state = PartialState()
        if not in_order:
            if state.is_main_process or not main_only:
                self.log.info(msg, *args)
            return
        for i in range(state.num_processes):
            if i == state.process_index:
                self.log.info("[%d/%d] " + msg, i, state.num_processes, *args)
            state.wait_for_everyone()


def describe_device(acc: Accelerator) -> str:
    if acc.device.type == "cuda":
        props = torch.cuda.get_device_properties(acc.device)
        return f"{props.name} {props.total_memory >> 30} GiB"
    return platform.processor()


def main():
    logging.basicConfig(format="%(asctime)s %(message)s")
    acc = Accelerator(gradient_accumulation_steps=4)
    log = OrderedLogger("train")
    log.info("device %s on %s", describe_device(acc), platform.node(), in_order=True)
    model = torch.nn.Linear(128, 10)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    data = [(torch.randn(128), i % 10) for i in range(2048)]
    model, opt, loader = acc.prepare(model, opt, DataLoader(data, batch_size=32, shuffle=True))
    for epoch in range(2):
        for step, (x, y) in enumerate(loader):
            with acc.accumulate(model):
                loss = torch.nn.functional.cross_entropy(model(x), y)
                acc.backward(loss)
                opt.step()
                opt.zero_grad()
            if step % 16 == 0:
                log.info("epoch %d step %d loss %.3f", epoch, step, loss.item())
        log.info("local loss %.3f after epoch %d", loss.item(), epoch, in_order=True)
    acc.end_training()


if __name__ == "__main__":
    main()
