"""Requests to another machine, each of which may fail on its own rank; calls of frameworks that all ranks make."""

from __future__ import annotations

from tests.lint.rules.marked import agree


def test_a_failed_request_leaves_past_a_collective() -> None:
    """A clause for failed requests that leaves past a collective is reported; one that goes on to it is not."""
    assert agree(
        """
        import urllib.request
        import httpx
        import requests
        import torch.distributed as dist
        from urllib.error import URLError

        class Judge:
            def __init__(self, url):
                self.url = url

            def ask(self, text):
                answer = requests.post(self.url, json=text, timeout=3)
                answer.raise_for_status()
                return answer.json()

            def scores(self, texts, scores):
                try:
                    mine = self.ask(texts)
                except requests.RequestException:
                    return None  # SPG102
                dist.all_gather_object(scores, mine)

        def fetched(url, out):
            try:
                body = urllib.request.urlopen(url).read()
            except (URLError, TimeoutError):
                return  # SPG102
            dist.all_gather_object(out, body)

        def rounds(urls, out):
            for url in urls:
                try:
                    body = httpx.get(url).text
                except httpx.TimeoutException:
                    continue  # SPG102
                dist.all_gather_object(out, body)

        def gives_nothing(url, out):
            try:
                body = requests.get(url).text
            except requests.RequestException:
                body = ""
            dist.all_gather_object(out, body)

        def kept_to_itself(url):
            try:
                return requests.get(url).text
            except requests.RequestException:
                return ""

        def around(url, out):
            dist.all_gather_object(out, kept_to_itself(url))

        def decoded(url, out):
            try:
                body = parse(requests.get(url))
            except AttributeError:
                return
            dist.all_gather_object(out, body)
        """,
        "SPG102",
    )


def test_pipelines_of_deepspeed() -> None:
    """``eval_batch`` and ``train_batch`` of what ``deepspeed.initialize`` returns run on every stage."""
    assert agree(
        """
        import deepspeed
        from deepspeed.pipe import PipelineModule

        def build(layers, config):
            engine, *_ = deepspeed.initialize(model=PipelineModule(layers=layers, num_stages=2), config=config)
            return engine

        def last_alone(layers, config, batches):
            engine = build(layers, config)
            for _ in range(10):
                engine.train_batch(data_iter=batches)
                if engine.is_last_stage():
                    engine.eval_batch(data_iter=batches)  # SPG101

        def first_alone(layers, config, batches):
            engine = build(layers, config)
            loss = engine.eval_batch(batches) if engine.is_first_stage() else None  # SPG105

        def all_of_them(layers, config, batches):
            engine = build(layers, config)
            loss = engine.eval_batch(data_iter=batches)
            if engine.is_last_stage():
                print(loss)
        """,
        "SPG101",
        "SPG105",
    )


def test_state_of_a_prepared_model() -> None:
    """Where Accelerate shards parameters, ``state_dict`` of a prepared model gathers them."""
    program = """
        from accelerate import Accelerator, FullyShardedDataParallelPlugin

        def sharded(model):
            accelerator = Accelerator({arguments})
            model = accelerator.prepare(model)
            if accelerator.is_main_process:
                save(model.state_dict()){mark}

        def everywhere(model):
            accelerator = Accelerator({arguments})
            model = accelerator.prepare(model)
            state = model.state_dict()
            if accelerator.is_main_process:
                save(state)

        def unwrapped(model):
            accelerator = Accelerator()
            model = accelerator.prepare(model)
            state = accelerator.get_state_dict(model)
            if accelerator.is_main_process:
                save(accelerator.unwrap_model(model), state)
        """
    plugin = "fsdp_plugin=FullyShardedDataParallelPlugin()"
    assert agree(program.format(arguments=plugin, mark="  # SPG101"), "SPG101", "SPG104")
    plain = program.replace(", FullyShardedDataParallelPlugin", "")
    assert agree(plain.format(arguments="", mark=""), "SPG101", "SPG104")


def test_metrics_of_which_each_process_has_a_part() -> None:
    """A metric of ``evaluate`` with a part on each process is computed by all of them; any other by whom it suits."""
    assert agree(
        """
        import evaluate
        import torch.distributed as dist
        from accelerate import Accelerator

        def alone(guesses, truths):
            rank = dist.get_rank()
            metric = evaluate.load("f1", num_process=dist.get_world_size(), process_id=rank)
            if rank == 0:
                print(metric.compute(predictions=guesses, references=truths))  # SPG101

        class Scorer:
            def __init__(self, run):
                self.accelerator = Accelerator()
                me = self.accelerator.process_index
                self.metric = evaluate.load("f1", None, None, me, self.accelerator.num_processes, experiment_id=run)

            def score(self):
                if self.accelerator.is_main_process:
                    return self.metric.compute()  # SPG101
                return None

            def on_all(self):
                found = self.metric.compute()
                if self.accelerator.is_main_process:
                    print(found)

        def gathered(guesses, truths):
            metric = evaluate.load("f1")
            if dist.get_rank() == 0:
                print(metric.compute(predictions=guesses, references=truths))
        """,
        "SPG101",
    )
