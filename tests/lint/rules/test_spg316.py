"""SPG316: generation with ZeRO-3 that ends on each rank for itself."""

from __future__ import annotations

import pytest

from tests.lint.rules.marked import agree

CONFIG = """
import deepspeed
import torch

CONFIG = {"train_batch_size": 8, "zero_optimization": {"stage": 3, "overlap_comm": True}}
"""
PROGRAM = """
class Rollout:
    def __init__(self, actor):
        self.actor = actor

    def sample(self, prompts, mask):
        return self.actor.module.generate(input_ids=prompts, attention_mask=mask, max_new_tokens=64)  # SPG316

def direct(model, prompts):
    engine, optimizer, _, _ = deepspeed.initialize(model=model, config=CONFIG)
    with torch.no_grad():
        return engine.generate(prompts, max_length=512, do_sample=True)  # SPG316

class Trainee:
    def __init__(self, model):
        self.engine, *_ = deepspeed.initialize(model=model, config_params=CONFIG)

    def answer(self, prompts):
        return self.engine.generate(prompts)  # SPG316
"""
SILENT = """
def synced(engine, prompts):
    return engine.module.generate(input_ids=prompts, max_new_tokens=64, synced_gpus=True)

def of_one_length(engine, prompts):
    return engine.module.generate(input_ids=prompts, max_new_tokens=64, min_new_tokens=64)

def by_options(engine, prompts, options):
    return engine.module.generate(input_ids=prompts, **options)

def of_another(reference, server, prompts):
    server.generate(prompts)
    return reference.generate(input_ids=prompts, max_new_tokens=64)

def images(engine):
    return engine.module.generate()
"""


def test_generation_of_sharded_models() -> None:
    """An engine by name, in a field, or what it wraps; the calls that keep ranks together are none."""
    assert agree(CONFIG + PROGRAM + SILENT, "SPG316")


@pytest.mark.parametrize(
    "told",
    [
        "from transformers.integrations import HfDeepSpeedConfig\nKEPT = HfDeepSpeedConfig(CONFIG)\n",
        "from accelerate import Accelerator\n",
        "from transformers import TrainingArguments\n",
        'CONFIG["hybrid_engine"] = {"enabled": True}\n',
    ],
)
def test_programs_that_tell_the_library(told: str) -> None:
    """Where transformers knows of ZeRO-3, it keeps the ranks together by itself."""
    assert agree(CONFIG + told + PROGRAM.replace("  # SPG316", ""), "SPG316")


def test_other_stages() -> None:
    """With ZeRO-2 each rank has all parameters."""
    program = (CONFIG + PROGRAM).replace('"stage": 3', '"stage": 2').replace("  # SPG316", "")
    assert agree(program, "SPG316")


def test_known_limit_a_config_in_a_file() -> None:
    """A stage that stands in a file of settings is not read."""
    program = PROGRAM.replace("config=CONFIG", 'config="zero3.json"').replace("  # SPG316", "")
    assert agree("import deepspeed\nimport torch\nCONFIG = None\n" + program, "SPG316")
