import json
import os

import deepspeed
import torch
import torch.distributed as dist
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.integrations import HfDeepSpeedConfig

DS = {
    "train_micro_batch_size_per_gpu": 1,
    "bf16": {"enabled": True},
    "zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": True},
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-5}},
}


def warm_start_new_tokens(model, count: int) -> None:
    """New rows of the embedding start at the mean of the old ones."""
    weight = model.get_input_embeddings().weight
    with deepspeed.zero.GatheredParameters([weight], modifier_rank=0):
        if dist.get_rank() == 0:
            with torch.no_grad():
                weight[-count:] = weight[:-count].float().mean(0).to(weight.dtype)


def norm_report(engine, path: str) -> None:
    rows = {}
    for name, param in engine.module.named_parameters():
        if "layernorm" not in name:
            continue
        with deepspeed.zero.GatheredParameters([param]):
            if dist.get_rank() == 0:
                rows[name] = param.detach().float().norm().item()
    if dist.get_rank() == 0:
        with open(path, "w") as f:
            json.dump(rows, f, indent=1)


def export(engine, tokenizer, folder: str) -> None:
    if dist.get_rank() == 0:
        os.makedirs(folder, exist_ok=True)
        tokenizer.save_pretrained(folder)
        engine.module.config.save_pretrained(folder)
    dist.barrier()
    engine.save_16bit_model(folder, "pytorch_model.bin")


def main(dataset, collate, name="Qwen/Qwen2.5-7B", out="out"):
    deepspeed.init_distributed()
    keep = HfDeepSpeedConfig(DS)  # noqa: F841  must stay alive: the model is built sharded
    tokenizer = AutoTokenizer.from_pretrained(name)
    added = tokenizer.add_special_tokens({"additional_special_tokens": ["<call>", "</call>"]})
    model = AutoModelForCausalLM.from_pretrained(name)
    model.resize_token_embeddings(len(tokenizer))
    if added:
        warm_start_new_tokens(model, added)
    engine, _, loader, _ = deepspeed.initialize(
        model=model, model_parameters=model.parameters(), training_data=dataset, collate_fn=collate, config=DS
    )
    for step, batch in enumerate(loader):
        loss = engine(**{k: v.to(engine.device) for k, v in batch.items()}).loss
        engine.backward(loss)
        engine.step()
        if step % 100 == 0 and dist.get_rank() == 0:
            print(step, loss.item(), flush=True)
    norm_report(engine, "norms.json")
    export(engine, tokenizer, out)
