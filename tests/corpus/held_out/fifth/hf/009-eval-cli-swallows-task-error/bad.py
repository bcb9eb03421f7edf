import argparse
import json
import logging
import sys

import torch
import torch.distributed as dist

eval_logger = logging.getLogger("evaluate")


def shard(items, rank, world):
    return items[rank::world]


def evaluate_task(model, task):
    rank, world = dist.get_rank(), dist.get_world_size()
    answers = []
    for sample in shard(task.samples, rank, world):
        image = sample.load_image()
        answers.append({"id": sample.id, "text": model.answer(image, sample.prompt)})
    gathered = [None] * world if rank == 0 else None
    dist.gather_object(answers, gathered, dst=0)
    report = None
    if rank == 0:
        flat = [a for part in gathered for a in part]
        report = {"task": task.name, "n": len(flat), "score": task.score(flat)}
    dist.barrier()
    return report


def cli_evaluate(model, tasks, out):
    results = []
    for task in tasks:
        eval_logger.info("running %s", task.name)
        try:
            results.append(evaluate_task(model, task))
        except Exception as exc:
            eval_logger.error("task %s failed: %s", task.name, exc)
            results.append(None)
    if dist.get_rank() == 0:
        with open(out, "w") as f:
            json.dump([r for r in results if r], f, indent=2)


def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--tasks", nargs="+", required=True)
    parser.add_argument("--output", default="report.json")
    args = parser.parse_args(argv)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO)

    from harness import load_model, load_task

    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    cli_evaluate(load_model(args.model), [load_task(t) for t in args.tasks], args.output)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
