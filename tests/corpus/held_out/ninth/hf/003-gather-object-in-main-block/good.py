import json

import torch
from accelerate import PartialState
from accelerate.utils import gather_object


def grade(model, tokenizer, prompts, out_file):
    state = PartialState()
    model.to(state.device).eval()
    answers = []
    with state.split_between_processes(prompts) as part:
        for text in part:
            ids = tokenizer(text, return_tensors="pt").input_ids.to(state.device)
            with torch.no_grad():
                new = model.generate(ids, max_new_tokens=64)
            answers.append({"prompt": text, "answer": tokenizer.decode(new[0, ids.size(1):])})

    rows = gather_object(answers)
    if state.is_main_process:
        with open(out_file, "w") as fh:
            for row in rows:
                fh.write(json.dumps(row) + "\n")
    state.wait_for_everyone()
