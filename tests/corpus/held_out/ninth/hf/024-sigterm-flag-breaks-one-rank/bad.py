import signal
import threading
from accelerate import Accelerator

preempted = threading.Event()


def train(model, opt, loader, args):
    signal.signal(signal.SIGTERM, lambda *_: preempted.set())
    accelerator = Accelerator()
    model, opt, loader = accelerator.prepare(model, opt, loader)
    for epoch in range(args.epochs):
        for batch in loader:
            accelerator.backward(model(**batch).loss)
            opt.step()
            opt.zero_grad()
            if preempted.is_set():
                break
        accelerator.save_state(f"{args.out}/epoch{epoch}")
        if preempted.is_set():
            return "preempted"
    return "done"
