import deepspeed
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, HfArgumentParser, Trainer, TrainingArguments
from transformers.integrations import HfDeepSpeedConfig


def grow_vocabulary(model, tokenizer, words):
    added = tokenizer.add_tokens(words)
    if added:
        model.resize_token_embeddings(len(tokenizer))
    return added


def average_new_rows(model, added):
    table = model.get_input_embeddings().weight
    head = model.get_output_embeddings().weight
    with deepspeed.zero.GatheredParameters([table, head], modifier_rank=0):
        with torch.no_grad():
            for weight in (table, head):
                mean = weight[:-added].float().mean(0)
                weight[-added:] = mean.to(weight.dtype)


def build(name, words, ds_config):
    keep = HfDeepSpeedConfig(ds_config)
    tokenizer = AutoTokenizer.from_pretrained(name)
    model = AutoModelForCausalLM.from_pretrained(name)
    added = grow_vocabulary(model, tokenizer, words)
    if added:
        average_new_rows(model, added)
    return model, tokenizer, keep


def main(dataset, collator, words):
    (args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
    model, tokenizer, _ = build("meta-llama/Llama-3.2-1B", words, args.deepspeed)
    trainer = Trainer(
        model=model, args=args, train_dataset=dataset, data_collator=collator, processing_class=tokenizer
    )
    trainer.train()
    trainer.save_model()
