import logging
from contextlib import contextmanager

import torch
import torch.distributed as dist
from megatron.core import parallel_state as mpu
from megatron.core.pipeline_parallel import get_forward_backward_func

logger = logging.getLogger(__name__)


def is_last_rank() -> bool:
    return dist.get_rank() == dist.get_world_size() - 1


@contextmanager
def eval_mode(chunks):
    for chunk in chunks:
        chunk.eval()
    try:
        yield
    finally:
        for chunk in chunks:
            chunk.train()


def evaluate(cfg, forward_step, data_iterator, model, process_non_loss_data=None, iteration=0):
    schedule = get_forward_backward_func()
    common = dict(
        model=model,
        seq_length=cfg.seq_length,
        micro_batch_size=cfg.micro_batch_size,
        forward_only=True,
    )
    totals = torch.zeros(2, device="cuda")
    collected = None
    with eval_mode(model), torch.no_grad():
        for _ in range(cfg.eval_iters):
            outputs = schedule(
                forward_step_func=forward_step,
                data_iterator=data_iterator,
                num_microbatches=cfg.num_microbatches,
                **common,
            )
            if mpu.is_pipeline_last_stage():
                for item in outputs:
                    totals += torch.stack([item["lm loss"][0], item["lm loss"][1]])

        if process_non_loss_data is not None:
            collected = schedule(
                forward_step_func=forward_step,
                data_iterator=data_iterator,
                num_microbatches=cfg.num_microbatches,
                collect_non_loss_data=True,
                **common,
            )

    dist.all_reduce(totals, group=mpu.get_data_parallel_group(with_context_parallel=True))
    dist.broadcast(
        totals,
        src=mpu.get_pipeline_model_parallel_last_rank(),
        group=mpu.get_pipeline_model_parallel_group(),
    )
    loss = (totals[0] / totals[1].clamp(min=1)).item()
    if is_last_rank():
        logger.info("iteration %d validation loss %.5f", iteration, loss)
        if collected is not None:
            process_non_loss_data(collected, iteration)
    return loss
