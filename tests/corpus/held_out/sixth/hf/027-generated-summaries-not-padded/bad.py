import json
import logging
from pathlib import Path

import evaluate
import numpy as np
import torch
from accelerate import Accelerator
from datasets import load_dataset
from torch.utils.data import DataLoader
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, DataCollatorForSeq2Seq

log = logging.getLogger(__name__)
CHECKPOINT = "facebook/bart-base"


def tokenized(split, tokenizer):
    def encode(rows):
        enc = tokenizer(rows["document"], max_length=1024, truncation=True)
        enc["labels"] = tokenizer(text_target=rows["summary"], max_length=142, truncation=True)["input_ids"]
        return enc

    raw = load_dataset("xsum", split=split)
    return raw.map(encode, batched=True, remove_columns=raw.column_names)


def run_eval(model, loader, tokenizer, accelerator, rouge):
    model.eval()
    pad = tokenizer.pad_token_id
    for batch in loader:
        with torch.no_grad():
            answers = accelerator.unwrap_model(model).generate(
                batch["input_ids"], attention_mask=batch["attention_mask"], num_beams=4, max_length=142
            )
        labels = batch["labels"].masked_fill(batch["labels"] == -100, pad)
        answers, labels = accelerator.gather_for_metrics((answers, labels))
        predictions = tokenizer.batch_decode(answers.cpu().numpy(), skip_special_tokens=True)
        references = tokenizer.batch_decode(labels.cpu().numpy(), skip_special_tokens=True)
        rouge.add_batch(predictions=predictions, references=references)
    return {k: round(float(np.mean(v)) * 100, 2) for k, v in rouge.compute().items()}


def main():
    accelerator = Accelerator(mixed_precision="bf16")
    tokenizer = AutoTokenizer.from_pretrained(CHECKPOINT)
    model = AutoModelForSeq2SeqLM.from_pretrained(CHECKPOINT)
    with accelerator.main_process_first():
        data = tokenized("validation", tokenizer)
    loader = DataLoader(data, batch_size=8, collate_fn=DataCollatorForSeq2Seq(tokenizer, model=model))
    model, loader = accelerator.prepare(model, loader)
    scores = run_eval(model, loader, tokenizer, accelerator, evaluate.load("rouge"))
    if accelerator.is_main_process:
        Path("scores.json").write_text(json.dumps(scores, indent=2))
        log.info("%s", scores)


if __name__ == "__main__":
    main()
