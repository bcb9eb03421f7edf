import deepspeed
import torch
import torch.distributed as dist


class EngineCheckpointer:
    def __init__(self, engine, folder, every):
        self.engine, self.folder, self.every = engine, folder, every

    def maybe_save(self, step, state):
        if step % self.every:
            return None
        self.engine.save_checkpoint(self.folder, tag=f"step{step}", client_state=state)
        return step


class EngineTrainer:
    def __init__(self, model, ds_config, folder=None, every=1000):
        self.engine, *_ = deepspeed.initialize(
            model=model, model_parameters=model.parameters(), config=ds_config
        )
        self._master = dist.get_rank() == 0
        self._checkpointer = EngineCheckpointer(self.engine, folder, every) if folder else None

    def _log_memory(self):
        used = torch.tensor(float(torch.cuda.max_memory_allocated()), device=self.engine.device)
        dist.all_reduce(used, op=dist.ReduceOp.MAX)
        if self._master:
            print(f"peak {used.item() / 2**30:.1f} GiB")

    def train(self, loader):
        for step, batch in enumerate(loader, start=1):
            loss = self.engine(**batch)
            self.engine.backward(loss)
            self.engine.step()
            if self._master and self._checkpointer is not None:
                self._checkpointer.maybe_save(step, {"step": step})
            if step % 100 == 0:
                self._log_memory()
