import torch
import torch.distributed as dist
from composer.core import Callback, State
from composer.loggers import Logger


class LayerNormTracker:
    """Collects statistics of the sharded optimizer; a rank holds only some parameters."""

    def __init__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer):
        self.names = {p: n for n, p in model.named_parameters()}
        self.optimizer = optimizer

    def local(self) -> dict:
        out = {}
        for group in self.optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None or p.numel() == 0:
                    continue
                name = self.names[p]
                out[f"l2_norm/grad/{name}"] = p.grad.pow(2).sum()
                state = self.optimizer.state.get(p, {})
                if "exp_avg" in state:
                    out[f"l2_norm/moment/{name}"] = state["exp_avg"].pow(2).sum()
                out[f"max/grad/{name}"] = p.grad.abs().max()
        return out


def reduce_metrics(local: dict, device: torch.device) -> dict:
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, list(local))
    keys = set()
    for part in everyone:
        keys.update(part)
    ordered = sorted(keys)
    result = {}
    for key in ordered:
        value = local.get(key, torch.zeros((), device=device)).clone()
        if key.startswith("l2_norm"):
            dist.all_reduce(value, op=dist.ReduceOp.SUM)
            value = value.sqrt()
        else:
            dist.all_reduce(value, op=dist.ReduceOp.MAX)
        result[key] = value.item()
    return result


class OptimizerMonitor(Callback):
    def __init__(self, batch_log_interval: int = 50):
        self.interval = batch_log_interval
        self.tracker = None

    def fit_start(self, state: State, logger: Logger) -> None:
        self.tracker = LayerNormTracker(state.model, state.optimizers[0])

    def batch_end(self, state: State, logger: Logger) -> None:
        if int(state.timestamp.batch) % self.interval != 0:
            return
        device = torch.device("cuda", torch.cuda.current_device())
        metrics = reduce_metrics(self.tracker.local(), device)
        logger.log_metrics({f"optimizer/{k}": v for k, v in metrics.items()})
