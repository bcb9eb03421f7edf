import json
import torch
from accelerate import PartialState
from accelerate.utils import gather_object
from diffusers import DiffusionPipeline


def load(name, state):
    pipe = DiffusionPipeline.from_pretrained(name, torch_dtype=torch.float16)
    pipe.set_progress_bar_config(disable=not state.is_main_process)
    return pipe.to(state.device)


def score_prompts(name, prompts, clip_score, report):
    state = PartialState()
    pipe = load(name, state)
    mine = []
    with state.split_between_processes(prompts) as share:
        for text in share:
            image = pipe(text, num_inference_steps=30).images[0]
            mine.append({"prompt": text, "clip": float(clip_score(image, text))})
    table = gather_object(mine)
    if state.is_main_process:
        with open(report, "w") as fh:
            json.dump(table, fh, indent=1)
    state.wait_for_everyone()


def main(prompt_file, clip_score):
    with open(prompt_file) as fh:
        prompts = [line.strip() for line in fh if line.strip()]
    score_prompts("stabilityai/stable-diffusion-2-1", prompts, clip_score, "clip.json")
