"""ZeRO-3 fine-tuning: new token rows are set on one rank inside GatheredParameters."""
import json
import os
from datetime import timedelta
from pathlib import Path

import deepspeed
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.integrations import HfDeepSpeedConfig

CONFIG = {
    "train_micro_batch_size_per_gpu": 2,
    "gradient_accumulation_steps": 8,
    "bf16": {"enabled": True},
    "zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": True},
    "gradient_clipping": 1.0,
}
EXTRA = ["<|user|>", "<|assistant|>", "<|end|>"]


def gathered(params, modifier_rank=None):
    return deepspeed.zero.GatheredParameters(params, modifier_rank=modifier_rank)


def set_new_rows(model, first_new):
    table = model.get_input_embeddings().weight
    with gathered([table], modifier_rank=0):
        if dist.get_rank() == 0:
            with torch.no_grad():
                table[first_new:] = table[:first_new].mean(0, keepdim=True)


def embedding_norm(model):
    table = model.get_input_embeddings().weight
    with gathered([table]):
        return table.detach().float().norm().item()


def encode_chats(path, tokenizer, max_len):
    rows = []
    for line in Path(path).read_text().splitlines():
        chat = json.loads(line)
        text = "".join(f"<|{m['role']}|>{m['content']}<|end|>" for m in chat["messages"])
        ids = tokenizer(text, truncation=True, max_length=max_len, padding="max_length", return_tensors="pt")
        rows.append((ids.input_ids[0], ids.attention_mask[0]))
    return rows


def save_for_inference(engine, tokenizer, folder):
    """Every rank takes part in the gather that save_16bit_model does."""
    if dist.get_rank() == 0:
        os.makedirs(folder, exist_ok=True)
    dist.barrier()
    saved = engine.save_16bit_model(folder, "pytorch_model.bin")
    if dist.get_rank() == 0:
        engine.module.config.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        print("weights written" if saved else "weights not gathered, see the config")


def train(engine, loader, epochs):
    for epoch in range(epochs):
        loader.sampler.set_epoch(epoch)
        total = torch.zeros(2, device=engine.device)
        for ids, mask in loader:
            ids, mask = ids.to(engine.device), mask.to(engine.device)
            loss = engine(input_ids=ids, attention_mask=mask, labels=ids.masked_fill(mask == 0, -100)).loss
            engine.backward(loss)
            engine.step()
            total += torch.stack([loss.detach().float(), torch.ones((), device=engine.device)])
        dist.all_reduce(total)
        norm = embedding_norm(engine.module)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: loss {(total[0] / total[1]).item():.4f}, embedding norm {norm:.2f}")
        engine.save_checkpoint("zero3", tag=f"epoch{epoch}")


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    deepspeed.init_distributed(timeout=timedelta(minutes=60))
    torch.manual_seed(21)
    name = os.environ.get("MODEL", "EleutherAI/pythia-1b")

    holder = HfDeepSpeedConfig(CONFIG)  # has to stay alive while the model is loaded
    tokenizer = AutoTokenizer.from_pretrained(name)
    tokenizer.pad_token = tokenizer.eos_token
    first_new = len(tokenizer)
    tokenizer.add_special_tokens({"additional_special_tokens": EXTRA})
    model = AutoModelForCausalLM.from_pretrained(name, torch_dtype=torch.bfloat16)
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    set_new_rows(model, first_new)

    rows = encode_chats(os.environ["CHATS"], tokenizer, 1024)
    loader = DataLoader(rows, batch_size=2, sampler=DistributedSampler(rows, drop_last=True), drop_last=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    engine, _, _, _ = deepspeed.initialize(model=model, optimizer=optimizer, config=CONFIG)
    del holder
    train(engine, loader, epochs=2)
    save_for_inference(engine, tokenizer, "final")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
