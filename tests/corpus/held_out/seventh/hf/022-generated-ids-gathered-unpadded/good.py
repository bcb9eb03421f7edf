import torch
from accelerate import Accelerator
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer


def summarise(name, loader, metric):
    accelerator = Accelerator()
    tokenizer = AutoTokenizer.from_pretrained(name)
    model = AutoModelForSeq2SeqLM.from_pretrained(name)
    model, loader = accelerator.prepare(model, loader)
    model.eval()
    for batch in loader:
        with torch.no_grad():
            ids = accelerator.unwrap_model(model).generate(
                batch["input_ids"], attention_mask=batch["attention_mask"], max_new_tokens=128
            )
        pad = tokenizer.pad_token_id
        ids = accelerator.pad_across_processes(ids, dim=1, pad_index=pad)
        labels = accelerator.pad_across_processes(batch["labels"], dim=1, pad_index=-100)
        ids, labels = accelerator.gather_for_metrics((ids, labels))
        labels = labels.masked_fill(labels == -100, tokenizer.pad_token_id)
        metric.add_batch(
            predictions=tokenizer.batch_decode(ids, skip_special_tokens=True),
            references=tokenizer.batch_decode(labels, skip_special_tokens=True),
        )
    if accelerator.is_main_process:
        print(metric.compute())
