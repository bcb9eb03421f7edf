import os
from accelerate import Accelerator
from datasets import load_dataset, load_from_disk
from torch.utils.data import DataLoader


def prepared(accelerator, tokenizer, files, cache):
    if accelerator.is_main_process and not os.path.isdir(cache):
        raw = load_dataset("text", data_files=files, split="train")
        raw = raw.map(lambda r: tokenizer(r["text"], truncation=True), batched=True,
                      remove_columns=["text"])
        raw.save_to_disk(cache)
    accelerator.wait_for_everyone()
    return load_from_disk(cache)


def main(model, opt, tokenizer, collate, files, cache):
    accelerator = Accelerator(gradient_accumulation_steps=2)
    data = prepared(accelerator, tokenizer, files, cache)
    loader = DataLoader(data, batch_size=8, shuffle=True, collate_fn=collate)
    model, opt, loader = accelerator.prepare(model, opt, loader)
    for batch in loader:
        with accelerator.accumulate(model):
            accelerator.backward(model(**batch).loss)
            opt.step()
            opt.zero_grad()
