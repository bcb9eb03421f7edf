import torch
from accelerate import Accelerator
from torch.nn import functional as F


def targets_for(accelerator, teacher, texts):
    with torch.no_grad():
        return teacher(texts).softmax(-1)


def setup(accelerator, student, teacher, optimizer, loader):
    student, optimizer, loader = accelerator.prepare(student, optimizer, loader)
    teacher = accelerator.prepare(teacher)
    accelerator.print("teacher has", sum(p.numel() for p in teacher.parameters()), "weights")
    return student, teacher.eval(), optimizer, loader


def distil(student, teacher, loader, lr=3e-4, temperature=2.0):
    accelerator = Accelerator(mixed_precision="bf16")
    optimizer = torch.optim.AdamW(student.parameters(), lr=lr)
    student, teacher, optimizer, loader = setup(accelerator, student, teacher, optimizer, loader)
    for texts in loader:
        soft = targets_for(accelerator, teacher, texts)
        loss = F.kl_div((student(texts) / temperature).log_softmax(-1), soft, reduction="batchmean")
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    accelerator.wait_for_everyone()
