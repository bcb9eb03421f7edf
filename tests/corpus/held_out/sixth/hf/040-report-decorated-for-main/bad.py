import argparse
import json
from collections import Counter
from pathlib import Path

import torch
from accelerate import PartialState
from accelerate.utils import gather_object
from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer

state = PartialState()

TEMPLATE = "[INST] Grade the answer from 1 to 5.\nQuestion: {question}\nAnswer: {answer}\nGrade: [/INST]"


class Grader:
    def __init__(self, name: str):
        self.tokenizer = AutoTokenizer.from_pretrained(name)
        self.model = AutoModelForCausalLM.from_pretrained(name, torch_dtype=torch.bfloat16).to(state.device).eval()

    @torch.inference_mode()
    def grade(self, row):
        enc = self.tokenizer(TEMPLATE.format(**row), return_tensors="pt").to(state.device)
        out = self.model.generate(**enc, max_new_tokens=3, do_sample=False)
        text = self.tokenizer.decode(out[0, enc.input_ids.shape[1]:], skip_special_tokens=True).strip()
        return {"id": row["id"], "grade": int(text[0]) if text[:1].isdigit() else None}


@state.on_main_process
def write_report(grades, path: Path):
    everything = gather_object(grades)
    counts = Counter(g["grade"] for g in everything)
    valid = [g["grade"] for g in everything if g["grade"] is not None]
    summary = {"n": len(everything), "mean": sum(valid) / max(len(valid), 1), "histogram": dict(counts)}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"summary": summary, "grades": everything}, default=str))
    print(summary)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="mistralai/Mistral-7B-Instruct-v0.2")
    parser.add_argument("--answers", required=True)
    parser.add_argument("--report", type=Path, default=Path("grades/report.json"))
    args = parser.parse_args()
    rows = load_dataset("json", data_files=args.answers, split="train").to_list()
    grader = Grader(args.model)
    with state.split_between_processes(rows) as mine:
        grades = [grader.grade(row) for row in mine]
    write_report(grades, args.report)
    state.wait_for_everyone()


if __name__ == "__main__":
    main()
