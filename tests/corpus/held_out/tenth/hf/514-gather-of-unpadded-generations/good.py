import torch
from accelerate import Accelerator
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer


@torch.no_grad()
def predict(accelerator, model, tokenizer, loader):
    model.eval()
    texts, gold = [], []
    for batch in loader:
        out = accelerator.unwrap_model(model).generate(
            batch["input_ids"], attention_mask=batch["attention_mask"], max_new_tokens=128
        )
        out = accelerator.pad_across_processes(out, dim=1, pad_index=tokenizer.pad_token_id)
        labels = accelerator.pad_across_processes(batch["labels"], dim=1, pad_index=-100)
        out, labels = accelerator.gather_for_metrics((out, labels))
        labels = torch.where(labels == -100, tokenizer.pad_token_id, labels)
        texts += tokenizer.batch_decode(out, skip_special_tokens=True)
        gold += tokenizer.batch_decode(labels, skip_special_tokens=True)
    model.train()
    return texts, gold


def main(name, train_loader, val_loader, rouge, epochs=3):
    accelerator = Accelerator()
    tokenizer = AutoTokenizer.from_pretrained(name)
    model = AutoModelForSeq2SeqLM.from_pretrained(name)
    opt = torch.optim.AdamW(model.parameters(), lr=5e-5)
    model, opt, train_loader, val_loader = accelerator.prepare(
        model, opt, train_loader, val_loader
    )
    for epoch in range(epochs):
        for batch in train_loader:
            accelerator.backward(model(**batch).loss)
            opt.step()
            opt.zero_grad()
        texts, gold = predict(accelerator, model, tokenizer, val_loader)
        accelerator.print(epoch, rouge.compute(predictions=texts, references=gold))
