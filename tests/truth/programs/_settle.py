"""The programs that wait after each step do it by this: then nothing is queued and no temporary is pinned."""

from dpctl.utils import SequentialOrderManager


def settle(*things):
    """Wait for everything queued on the queues of these arrays, memory objects, or queues."""
    for thing in things:
        queue = getattr(thing, "sycl_queue", thing)
        SequentialOrderManager[queue].wait()
        queue.wait()
