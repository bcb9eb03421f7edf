import threading


class World:
    def __init__(self, size):
        self.size = size
        self.barrier = threading.Barrier(size)
        self.slots = [0] * size

    def all_reduce(self, rank, value):
        self.slots[rank] = value
        self.barrier.wait()
        total = sum(self.slots)
        self.barrier.wait()
        return total


def body(rank, world, results):
    total = world.all_reduce(rank, rank + 1)
    if rank == 0:
        results["first"] = total
    world.barrier.wait()
    if rank != 0:
        return
    results["done"] = True


def main(size=4):
    world, results = World(size), {}
    threads = [
        threading.Thread(target=body, args=(rank, world, results)) for rank in range(size)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results


if __name__ == "__main__":
    assert main() == {"first": 10, "done": True}
