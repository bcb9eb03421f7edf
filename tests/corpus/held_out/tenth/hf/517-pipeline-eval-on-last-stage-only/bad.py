import deepspeed
from deepspeed.pipe import PipelineModule
from deepspeed.utils import RepeatingLoader


def build(layers, loss_fn, stages, ds_config):
    net = PipelineModule(layers=layers, loss_fn=loss_fn, num_stages=stages)
    engine, *_ = deepspeed.initialize(
        model=net,
        model_parameters=[p for p in net.parameters() if p.requires_grad],
        config=ds_config,
    )
    return engine


def validate(engine, loader, rounds):
    it = iter(RepeatingLoader(loader))
    total = 0.0
    for _ in range(rounds):
        total += engine.eval_batch(data_iter=it).item()
    return total / rounds


def train(layers, loss_fn, train_loader, val_loader, ds_config, steps, eval_every=200):
    deepspeed.init_distributed()
    engine = build(layers, loss_fn, stages=4, ds_config=ds_config)
    it = iter(RepeatingLoader(train_loader))
    for step in range(1, steps + 1):
        loss = engine.train_batch(data_iter=it)
        if step % eval_every == 0 and engine.is_last_stage():
            val = validate(engine, val_loader, rounds=8)
            print(f"step {step}: train {loss.item():.3f} val {val:.3f}")
    engine.save_checkpoint("out")
