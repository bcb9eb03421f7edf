import json

import torch
from accelerate import PartialState
from accelerate.utils import gather_object
from transformers import AutoModelForCausalLM, AutoTokenizer

state = PartialState()


@state.on_main_process
def write_answers(rows, path):
    rows = gather_object(rows)
    with open(path, "w") as fh:
        for row in sorted(rows, key=lambda r: r["id"]):
            fh.write(json.dumps(row) + "\n")
    print(len(rows), "answers in", path)


def answer(name, questions, path):
    tokenizer = AutoTokenizer.from_pretrained(name)
    model = AutoModelForCausalLM.from_pretrained(name, torch_dtype=torch.bfloat16)
    model.to(state.device).eval()
    rows = []
    with state.split_between_processes(questions) as mine:
        for q in mine:
            enc = tokenizer(q["text"], return_tensors="pt").to(state.device)
            with torch.no_grad():
                out = model.generate(**enc, max_new_tokens=200)
            text = tokenizer.decode(out[0, enc["input_ids"].size(1):], skip_special_tokens=True)
            rows.append({"id": q["id"], "answer": text})
    write_answers(rows, path)
