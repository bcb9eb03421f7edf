import json
import torch.distributed as dist


class ActivationMonitor:
    def __init__(self, model, path, suffixes=("mlp", "self_attn")):
        self.path, self.values = path, {}
        for name, module in model.named_modules():
            if name.endswith(suffixes):
                module.register_forward_hook(self._hook(name))

    def _hook(self, name):
        def save(module, args, output):
            out = output[0] if isinstance(output, tuple) else output
            self.values[name] = out.detach().float().norm().item()
        return save

    def flush(self, step):
        parts = [None] * dist.get_world_size()
        dist.all_gather_object(parts, self.values)
        self.values = {}
        merged = {k: v for part in parts for k, v in part.items()}
        if dist.get_rank() == 0 and merged:
            with open(self.path, "a") as fh:
                fh.write(json.dumps({"step": step, **merged}) + "\n")
        return merged


def train(engine, stage, batches, steps, path):
    monitor = ActivationMonitor(stage, path)
    for step in range(steps):
        engine.train_batch(batches)
        monitor.flush(step)
