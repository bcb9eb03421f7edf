import queue
import threading

import torch
import torch.distributed as dist


class BackgroundWriter:
    """Copies to host memory in the caller, writes in a thread. No collectives here."""

    def __init__(self):
        self.jobs = queue.Queue(maxsize=2)
        self.error = None
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def _work(self):
        while (job := self.jobs.get()) is not None:
            path, blob = job
            try:
                torch.save(blob, path)
            except OSError as exc:
                self.error = exc

    def submit(self, path, blob):
        if self.error is not None:
            raise RuntimeError("a former checkpoint was not written") from self.error
        self.jobs.put((path, blob))

    def close(self):
        self.jobs.put(None)
        self.thread.join()
        if self.error is not None:
            raise RuntimeError("the last checkpoint was not written") from self.error


def host_copy(state):
    return {k: v.detach().to("cpu", copy=True) if torch.is_tensor(v) else v for k, v in state.items()}


def train(ddp, opt, loader, cfg):
    rank = dist.get_rank()
    writer = BackgroundWriter() if rank == 0 else None
    for step, batch in enumerate(loader, 1):
        loss = ddp(batch.cuda()).pow(2).mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
        if step % cfg.save_every == 0:
            if writer is not None:
                writer.submit(f"{cfg.out}/{step}.pt", host_copy(ddp.module.state_dict()))
            dist.barrier()
        if step == cfg.steps:
            break
    if writer is not None:
        writer.close()
    dist.barrier()
    dist.destroy_process_group()
