import os
import unittest

import torch
import torch.distributed as dist

WORLD = int(os.environ.get("WORLD_SIZE", "1"))


def setUpModule():
    if WORLD > 1:
        dist.init_process_group("gloo")


def tearDownModule():
    if WORLD > 1:
        dist.destroy_process_group()


@unittest.skipIf(WORLD < 2, "needs two processes")
class SumTest(unittest.TestCase):
    def setUp(self):
        self.rank = dist.get_rank()
        dist.barrier()

    def test_a_sum(self):
        t = torch.ones(2)
        dist.all_reduce(t)
        self.assertEqual(t[0].item(), WORLD)

    def test_b_broadcast(self):
        t = torch.full((2,), float(self.rank))
        dist.broadcast(t, src=1)
        if self.rank != 1:
            self.assertEqual(t[0].item(), 1)

    @unittest.skipUnless(WORLD >= 4, "needs four processes")
    def test_c_pairs(self):
        self.assertEqual(dist.get_world_size() % 2, 0)


if __name__ == "__main__":
    unittest.main(argv=["sum_test"], exit=False)
