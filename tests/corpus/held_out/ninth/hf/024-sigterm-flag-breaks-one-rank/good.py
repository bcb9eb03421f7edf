import signal
import threading
from accelerate import Accelerator

preempted = threading.Event()


def train(model, opt, loader, args):
    signal.signal(signal.SIGTERM, lambda *_: preempted.set())
    accelerator = Accelerator()
    model, opt, loader = accelerator.prepare(model, opt, loader)
    for epoch in range(args.epochs):
        stop = False
        for batch in loader:
            accelerator.backward(model(**batch).loss)
            opt.step()
            opt.zero_grad()
            if preempted.is_set():
                accelerator.set_trigger()
            stop = accelerator.check_trigger()
            if stop:
                break
        accelerator.save_state(f"{args.out}/epoch{epoch}")
        if stop:
            return "preempted"
    return "done"
