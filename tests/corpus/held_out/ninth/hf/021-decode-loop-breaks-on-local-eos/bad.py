import deepspeed
import torch
import torch.nn.functional as F


@torch.no_grad()
def rollout(student, ids, eos, max_new=256):
    done = torch.zeros(ids.size(0), dtype=torch.bool, device=ids.device)
    for _ in range(max_new):
        logits = student(input_ids=ids).logits[:, -1]
        token = torch.multinomial(logits.float().softmax(-1), 1).squeeze(1)
        token = torch.where(done, torch.full_like(token, eos), token)
        ids = torch.cat([ids, token[:, None]], dim=1)
        done = done | (token == eos)
        if done.all():
            break
    return ids


def train(student, teacher, loader, eos, ds_config):  # stage 3
    student, *_ = deepspeed.initialize(model=student, model_parameters=student.parameters(),
                                       config=ds_config)
    for prompt in loader:
        ids = rollout(student, prompt.to(student.device), eos)
        with torch.no_grad():
            target = teacher(input_ids=ids).logits.log_softmax(-1)
        guess = student(input_ids=ids).logits.log_softmax(-1)
        student.backward(F.kl_div(guess, target, log_target=True, reduction="batchmean"))
        student.step()
