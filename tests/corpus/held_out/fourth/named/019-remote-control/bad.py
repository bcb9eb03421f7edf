"""Long simulation that can be stopped by a line on a local socket."""
import socketserver
import threading

import torch
import torch.distributed as dist


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        if self.rfile.readline().strip() == b"stop":
            self.server.simulation.stop_requested = True
            self.wfile.write(b"ok\n")


class Simulation:
    def __init__(self, cells):
        self.cells = torch.rand(cells)
        self.stop_requested = False
        self.ticks = 0

    def listen(self, port):
        server = socketserver.TCPServer(("127.0.0.1", port), Handler)
        server.simulation = self
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def tick(self):
        edge = torch.stack([self.cells[0], self.cells[-1]])
        edges = [torch.empty(2) for _ in range(dist.get_world_size())]
        dist.all_gather(edges, edge)
        rank, size = dist.get_rank(), dist.get_world_size()
        left, right = edges[(rank - 1) % size][1], edges[(rank + 1) % size][0]
        padded = torch.cat([left[None], self.cells, right[None]])
        self.cells = 0.25 * padded[:-2] + 0.5 * padded[1:-1] + 0.25 * padded[2:]
        self.ticks += 1

    def run(self):
        while not self.stop_requested:
            self.tick()


def main():
    dist.init_process_group("gloo")
    simulation = Simulation(cells=1000)
    simulation.listen(port=7070 + dist.get_rank())
    simulation.run()
    dist.destroy_process_group()
    print(simulation.ticks)


if __name__ == "__main__":
    main()
