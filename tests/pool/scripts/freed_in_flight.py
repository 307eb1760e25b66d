"""Frees memory that a kernel still reads, lets somebody else have it and write to it, N times; prints what went wrong.

freed_in_flight.py N [in_order | queue_left]

`queue_left`: the queue that the work was given to is let go of before the memory is freed.
"""

import ctypes
import sys
from pathlib import Path

import dpctl
import dpctl.memory
import dpnp
import numpy
from dpnp.dpnp_array import dpnp_array

try:
    from dpnp import tensor
except ImportError:
    from dpctl import tensor  # before dpnp 0.20

SIZE = 1_000_000
interface = ctypes.CDLL(str(Path(dpctl.__file__).with_name("libDPCTLSyclInterface.so")))
interface.DPCTLmalloc_device.restype = ctypes.c_void_p
interface.DPCTLmalloc_device.argtypes = [ctypes.c_size_t, ctypes.c_void_p]
interface.DPCTLfree_with_queue.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
interface.DPCTLQueue_Create.restype = ctypes.c_void_p
interface.DPCTLQueue_Create.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
interface.DPCTLQueue_Memcpy.restype = ctypes.c_void_p
interface.DPCTLQueue_Memcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
for name in ("DPCTLQueue_Delete", "DPCTLEvent_Wait", "DPCTLEvent_Delete"):
    getattr(interface, name).argtypes = [ctypes.c_void_p]


class Borrowed:
    """Memory at an address, for dpctl: it frees nothing."""

    def __init__(self, address, queue):
        self.__sycl_usm_array_interface__ = {
            "data": (address, False),
            "shape": (SIZE * 8,),
            "typestr": "|u1",
            "strides": None,
            "version": 1,
            "syclobj": queue,
        }


class Copies:
    """Copies that a queue was given which nobody refers to any more."""

    def __init__(self, queue, target, source):
        context, device = queue.sycl_context.addressof_ref(), queue.sycl_device.addressof_ref()
        own = interface.DPCTLQueue_Create(context, device, None, 0)
        self._events = [interface.DPCTLQueue_Memcpy(own, target, source, SIZE * 8) for _ in range(20)]
        interface.DPCTLQueue_Delete(own)

    def wait(self):
        for event in self._events:
            interface.DPCTLEvent_Wait(event)
            interface.DPCTLEvent_Delete(event)


def main(rounds, in_order, queue_left):
    queue = dpctl.SyclQueue(property="in_order") if in_order else dpctl.SyclQueue()
    other = dpctl.SyclQueue(queue.sycl_context, queue.sycl_device)
    x = dpnp.asarray(numpy.random.default_rng(1).random(SIZE), sycl_queue=queue)
    expected = x if in_order or queue_left else dpnp.floor_divide(x, 0.1)
    queue.wait()
    wrong = reused = 0
    copies = []
    for _ in range(rounds):
        address = interface.DPCTLmalloc_device(SIZE * 8, queue.addressof_ref())
        memory = dpctl.memory.MemoryUSMDevice(Borrowed(address, queue))
        array = dpnp_array._create_from_usm_ndarray(tensor.usm_ndarray((SIZE,), dtype="f8", buffer=memory))
        array[...] = x
        queue.wait()
        if in_order:
            # A dpnp kernel would be held back by SYCL, behind dpctl's host task, and not be in flight yet.
            result = dpnp.empty_like(x)
            target = result.get_array().usm_data
            copies = [queue.memcpy_async(target, memory, SIZE * 8) for _ in range(20)]
        elif queue_left:
            result = dpnp.zeros_like(x)
            queue.wait()
            left = Copies(queue, result.get_array().usm_data._pointer, address)
        else:
            result = dpnp.floor_divide(array, 0.1)
        interface.DPCTLfree_with_queue(address, queue.addressof_ref())
        thief = dpctl.memory.MemoryUSMDevice(SIZE * 8, queue=other)
        thief.copy_from_host(bytes(SIZE * 8))
        reused += thief._pointer == address
        if queue_left:
            left.wait()
        queue.wait()
        wrong += not bool((result == expected).all())
        del thief
        copies.clear()
    print(f"wrong {wrong} of {rounds}, reused at once {reused}")


if __name__ == "__main__":
    main(int(sys.argv[1]), "in_order" in sys.argv, "queue_left" in sys.argv)
