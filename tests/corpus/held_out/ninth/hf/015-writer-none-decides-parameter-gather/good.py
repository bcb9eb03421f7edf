import deepspeed
import torch
import torch.distributed as dist
from torch.utils.tensorboard import SummaryWriter


def histograms(model, writer, step, wanted=("embed_tokens.weight", "lm_head.weight")):
    for name, param in model.named_parameters():
        if not name.endswith(wanted):
            continue
        with deepspeed.zero.GatheredParameters([param]):
            if writer is not None:
                writer.add_histogram(name, param.detach().float().cpu(), step)


def train(model, loader, ds_config, log_dir):  # ds_config: stage 3
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(),
                                      config=ds_config)
    writer = SummaryWriter(log_dir) if dist.get_rank() == 0 else None
    for step, batch in enumerate(loader):
        loss = engine(**batch).loss
        engine.backward(loss)
        engine.step()
        if writer is not None:
            writer.add_scalar("loss", loss.item(), step)
        if step % 250 == 0:
            histograms(engine.module, writer, step)
    if writer is not None:
        writer.close()
