import deepspeed
import torch
import torch.distributed as dist


def pretrain(net, dataset, config, out, save_every, total_steps):
    engine, _, loader, _ = deepspeed.initialize(
        model=net, model_parameters=net.parameters(), training_data=dataset, config=config
    )
    step, running = 0, None
    while step < total_steps:
        for ids in loader:
            loss = engine(ids.to(engine.device))
            engine.backward(loss)
            engine.step()
            step += 1
            value = loss.item()
            running = value if running is None else 0.98 * running + 0.02 * value
            if dist.get_rank() == 0 and step % 20 == 0:
                print(f"{step} {running:.4f} {torch.cuda.max_memory_allocated() >> 20} MiB")
            if step % save_every == 0:
                state = {"step": step, "running_loss": running}
                engine.save_checkpoint(out, tag=f"step{step}", client_state=state)
            if step == total_steps:
                break
