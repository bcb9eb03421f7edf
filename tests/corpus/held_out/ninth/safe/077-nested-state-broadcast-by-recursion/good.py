import torch
import torch.distributed as dist


def broadcast_tree(node, src=0):
    if isinstance(node, torch.Tensor):
        dist.broadcast(node, src=src)
        return node
    if isinstance(node, dict):
        return {key: broadcast_tree(node[key], src) for key in sorted(node)}
    if isinstance(node, (list, tuple)):
        return type(node)(broadcast_tree(item, src) for item in node)
    return node


def local_state(rank):
    state = {"step": torch.tensor(rank), "slots": [torch.full((2,), float(rank))] * 2}
    if rank == 0:
        state["lr"] = 0.1  # plain numbers are not sent
    return {"opt": state, "seen": (torch.tensor([rank]), "tokens")}


def main():
    dist.init_process_group("gloo")
    state = broadcast_tree(local_state(dist.get_rank()))
    assert state["opt"]["step"].item() == 0
    assert state["seen"][0].item() == 0
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
