import deepspeed
import torch.distributed as dist
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.integrations import HfDeepSpeedConfig


def fill_new_rows(model, old_size):
    table = model.get_input_embeddings().weight
    with deepspeed.zero.GatheredParameters(table, modifier_rank=0):
        if dist.get_rank() == 0:
            mean = table.data[:old_size].mean(0)
            table.data[old_size:] = mean


def build(name, new_words, config):
    keep = HfDeepSpeedConfig(config)
    tokenizer = AutoTokenizer.from_pretrained(name)
    model = AutoModelForCausalLM.from_pretrained(name)
    before = len(tokenizer)
    tokenizer.add_tokens(new_words)
    model.resize_token_embeddings(len(tokenizer))
    fill_new_rows(model, before)
    return tokenizer, model, keep


def main(config, new_words=("<scene>", "</scene>")):
    deepspeed.init_distributed()
    tokenizer, model, _ = build("gpt2-xl", list(new_words), config)
    engine, *_ = deepspeed.initialize(model=model, config=config, model_parameters=model.parameters())
    ids = tokenizer("<scene> night </scene>", return_tensors="pt").input_ids.to(engine.device)
    loss = engine(input_ids=ids, labels=ids).loss
    engine.backward(loss)
    engine.step()
