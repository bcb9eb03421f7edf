import deepspeed
import torch
import torch.distributed as dist

DS_CONFIG = {
    "train_micro_batch_size_per_gpu": 4,
    "bf16": {"enabled": True},
    "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}},
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-6}},
}


class Actor:
    def __init__(self, model, eos_id, pad_id):
        self.engine, *_ = deepspeed.initialize(
            model=model, model_parameters=model.parameters(), config=DS_CONFIG
        )
        self.eos_id, self.pad_id = eos_id, pad_id

    @torch.no_grad()
    def sample(self, ids, max_new):
        self.engine.eval()
        finished = torch.zeros(ids.size(0), dtype=torch.bool, device=ids.device)
        for _ in range(max_new):
            logits = self.engine(input_ids=ids).logits[:, -1]
            token = torch.multinomial(logits.float().softmax(-1), 1).squeeze(1)
            token = torch.where(finished, torch.full_like(token, self.pad_id), token)
            ids = torch.cat([ids, token[:, None]], dim=1)
            finished |= token == self.eos_id
            everywhere = finished.all().int()
            dist.all_reduce(everywhere, op=dist.ReduceOp.MIN)
            if everywhere.item():
                break
        self.engine.train()
        return ids


def rollout(actor, prompts, score, max_new=256):
    for batch in prompts:
        answers = actor.sample(batch.to(actor.engine.device), max_new)
        yield answers, score(answers)
