"""What the pool says it took from the runtime is what the runtime gave."""

from pooling import run

MIB = 1 << 20


def test_a_refused_request_is_in_no_number(tmp_path):
    source = """
        import ctypes, pathlib
        import dpctl, dpctl.memory as m, dpmem
        interface = ctypes.CDLL(str(pathlib.Path(dpctl.__file__).with_name("libDPCTLSyclInterface.so")))
        interface.DPCTLmalloc_device.restype = ctypes.c_void_p
        interface.DPCTLmalloc_device.argtypes = [ctypes.c_size_t, ctypes.c_void_p]
        kept = m.MemoryUSMDevice(4 << 20)
        queue = kept.sycl_queue.addressof_ref()
        # As large as a size that went negative in C++, and one that is no size class.
        for size in (2**64 - 1, 2**64 - 4096, 1 << 46):
            assert interface.DPCTLmalloc_device(size, queue) is None
        print(dpmem.memory_reserved(), dpmem.max_memory_reserved())
        del kept
        dpmem.empty_cache()
        print(dpmem.memory_reserved())
        dpmem.set_memory_limit("8MiB")
        kept = m.MemoryUSMDevice(8 << 20)
    """
    ran = run(tmp_path, source, "--pool")
    assert (ran.exit_code, ran.stdout) == (0, f"{4 * MIB} {4 * MIB}\n0\n"), ran.stderr
    assert ran.report["pool"]["peak_reserved_bytes"] == 8 * MIB
