import torch
from accelerate import Accelerator


def summaries(accelerator, model, tokenizer, loader):
    model.eval()
    texts, golds = [], []
    for batch in loader:
        with torch.no_grad():
            ids = accelerator.unwrap_model(model).generate(
                batch["input_ids"], attention_mask=batch["attention_mask"], max_new_tokens=128
            )
        ids = accelerator.pad_across_processes(ids, dim=1, pad_index=tokenizer.pad_token_id)
        ids, labels = accelerator.gather_for_metrics((ids, batch["labels"]))
        labels = labels.masked_fill(labels == -100, tokenizer.pad_token_id)
        texts += tokenizer.batch_decode(ids, skip_special_tokens=True)
        golds += tokenizer.batch_decode(labels, skip_special_tokens=True)
    model.train()
    return texts, golds


def main(model, tokenizer, opt, train_loader, dev_loader, score):
    # dev_loader's collator pads labels to a fixed length
    accelerator = Accelerator()
    model, opt, train_loader, dev_loader = accelerator.prepare(model, opt, train_loader, dev_loader)
    for batch in train_loader:
        accelerator.backward(model(**batch).loss)
        opt.step()
        opt.zero_grad()
    accelerator.print(score(*summaries(accelerator, model, tokenizer, dev_loader)))
