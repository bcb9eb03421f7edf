import os
import torch
import torch.distributed as dist


def load_train_state(folder, sched, sampler):
    path = os.path.join(folder, "train_state.pt")
    box = [None]
    if dist.get_rank() == 0:
        try:
            box[0] = torch.load(path, map_location="cpu")
        except FileNotFoundError:
            pass
        except Exception as err:
            box[0] = {"error": f"{path}: {type(err).__name__}: {err}"}
    dist.broadcast_object_list(box, src=0)
    if box[0] is None:
        return 0
    if "error" in box[0]:
        raise RuntimeError(box[0]["error"])
    sched.load_state_dict(box[0]["sched"])
    sampler.set_epoch(box[0]["epoch"])
    return box[0]["step"]


def main(model, opt, sched, loader, args):
    dist.init_process_group("gloo")
    step = load_train_state(args.resume, sched, loader.sampler)
    for batch in loader:
        model(**batch).loss.backward()
        opt.step()
        sched.step()
        opt.zero_grad()
        step += 1
    dist.destroy_process_group()
