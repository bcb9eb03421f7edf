import deepspeed
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


class Rollout:
    def __init__(self, engine, tokenizer, max_new_tokens):
        self.engine = engine
        self.eos = tokenizer.eos_token_id
        self.pad = tokenizer.pad_token_id
        self.limit = max_new_tokens

    @torch.no_grad()
    def sample(self, prompt_ids):
        ids = prompt_ids
        alive = torch.ones(ids.shape[0], dtype=torch.bool, device=ids.device)
        for _ in range(self.limit):
            logits = self.engine(input_ids=ids).logits[:, -1]
            token = torch.multinomial(logits.softmax(-1), 1).squeeze(1)
            token = torch.where(alive, token, torch.full_like(token, self.pad))
            ids = torch.cat([ids, token[:, None]], 1)
            alive &= token != self.eos
        return ids


def distill(args, prompts):
    deepspeed.init_distributed()
    tokenizer = AutoTokenizer.from_pretrained(args.student)
    student, _, _, _ = deepspeed.initialize(
        model=AutoModelForCausalLM.from_pretrained(args.student), config=args.ds_config_zero3
    )
    teacher, _, _, _ = deepspeed.initialize(
        model=AutoModelForCausalLM.from_pretrained(args.teacher), config=args.ds_config_eval
    )
    rollout = Rollout(student, tokenizer, args.max_new_tokens)
    for batch in prompts:
        ids = rollout.sample(batch["input_ids"].to(student.device))
        with torch.no_grad():
            target = teacher(input_ids=ids).logits.log_softmax(-1)
        own = student(input_ids=ids).logits.log_softmax(-1)
        loss = torch.nn.functional.kl_div(own, target, log_target=True, reduction="batchmean")
        student.backward(loss)
        student.step()
