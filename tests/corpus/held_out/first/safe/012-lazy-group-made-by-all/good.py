import torch.distributed as dist

_SIDE_GROUP = None


def side_group():
    global _SIDE_GROUP
    if _SIDE_GROUP is None:
        _SIDE_GROUP = dist.new_group(backend="gloo")
    return _SIDE_GROUP


def gather_notes(note):
    if dist.get_world_size() == 1:
        return [note]
    notes = [None] * dist.get_world_size()
    dist.all_gather_object(notes, note, group=side_group())
    return notes


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for turn in range(2):
        notes = gather_notes({"rank": rank, "turn": turn})
        if rank == 0:
            print(notes)
    assert [n["rank"] for n in notes] == list(range(dist.get_world_size()))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
