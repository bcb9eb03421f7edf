import deepspeed
import torch
import torch.distributed as dist
from transformers import AutoModelForCausalLM, AutoTokenizer


class Sampler:
    def __init__(self, engine, tokenizer, limit=64):
        self.engine = engine
        self.end = tokenizer.eos_token_id
        self.limit = limit

    @torch.no_grad()
    def roll_out(self, ids):
        ended = torch.zeros(ids.size(0), dtype=torch.bool, device=ids.device)
        past = None
        feed = ids
        for _ in range(self.limit):
            out = self.engine(input_ids=feed, past_key_values=past, use_cache=True)
            past = out.past_key_values
            probs = out.logits[:, -1].float().softmax(-1)
            token = torch.multinomial(probs, 1)
            token[ended] = self.end
            ids = torch.cat([ids, token], dim=1)
            ended |= token.squeeze(1) == self.end
            feed = token
            if ended.all():
                break
        return ids


def distill_step(student, teacher, sampler, prompts):
    student.eval()
    rows = sampler.roll_out(prompts)
    student.train()
    with torch.no_grad():
        target = teacher(input_ids=rows).logits.log_softmax(-1)
    source = student(input_ids=rows).logits.log_softmax(-1)
    loss = torch.nn.functional.kl_div(source, target, reduction="batchmean", log_target=True)
    student.backward(loss)
    student.step()
    return loss.detach()


def main():
    config = {
        "train_micro_batch_size_per_gpu": 2,
        "bf16": {"enabled": True},
        "zero_optimization": {"stage": 3},
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-6}},
    }
    deepspeed.init_distributed()
    tok = AutoTokenizer.from_pretrained("Qwen/Qwen2.5-0.5B-Instruct")
    small = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B-Instruct")
    large = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-1.5B-Instruct")
    student, *_ = deepspeed.initialize(model=small, model_parameters=small.parameters(), config=config)
    frozen = {k: v for k, v in config.items() if k != "optimizer"}
    teacher, *_ = deepspeed.initialize(model=large, config=frozen)
    sampler = Sampler(student, tok)
    questions = [f"What is {dist.get_rank()} plus {n}?" for n in range(20)]
    for question in questions:
        prompts = tok([question, question], return_tensors="pt").input_ids.to(student.device)
        distill_step(student, teacher, sampler, prompts)


if __name__ == "__main__":
    main()
