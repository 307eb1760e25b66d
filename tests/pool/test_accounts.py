"""What the pool says it took from the runtime is what the runtime gave."""

from pooling import run, run_plainly

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


def test_stats_tell_what_the_runtime_gave_and_took_back(tmp_path):
    source = """
        import dpctl.memory as m, dpmem
        dpmem.start()
        before = m.MemoryUSMDevice(1 << 20)
        del before
        dpmem.enable_pool()

        def use(size=10 << 20):
            m.MemoryUSMDevice(size)

        def show(*names):
            stats = dpmem.memory_stats()
            print(*(stats[name] for name in names))

        flows = ["allocated_bytes.all.allocated"] + [f"reserved_bytes.all.{what}" for what in ("allocated", "freed")]
        does = [f"pool.{what}" for what in ("hits", "misses", "trims", "rescues")]
        for _ in range(100):
            use()
        show(*flows, *does)
        dpmem.empty_cache()
        show(*flows, *does)
        use()
        dpmem.set_memory_limit("20MiB")
        use(15 << 20)
        try:
            use(30 << 20)
        except dpmem.OutOfDeviceMemory:
            pass
        show("num_ooms", *does)
        dpmem.reset_accumulated_memory_stats()
        show("num_ooms", *flows, *does)
        use(15 << 20)
        show(*flows, *does)
        dpmem.stop()
        use()
        show(*flows)
    """
    ran = run_plainly(tmp_path, source)
    mib = [
        [word if int(word) < MIB else f"{int(word) // MIB}M" for word in line.split()]
        for line in ran.stdout.splitlines()
    ]
    assert [" ".join(line) for line in mib] == [
        "1001M 11M 1M 99 1 0 0",
        "1001M 11M 11M 99 1 0 0",
        "1 99 3 2 0",
        "0 0 0 0 0 0 0 0",
        "15M 15M 0 0 1 0 0",
        "15M 15M 0",
    ]


def test_a_limit_shows_from_the_moment_on_that_it_is_set(tmp_path):
    source = """
        import dpctl.memory as m, dpmem
        kept = m.MemoryUSMDevice(1000)
        dpmem.enable_pool(limit="1GiB")
        print(dpmem.memory_summary(abbreviated=True).count("limit 1 GiB"))
        print(dpmem.set_memory_limit("2GiB") == 1 << 30)
        print(dpmem.memory_summary(abbreviated=True).count("limit 2 GiB"))
    """
    assert run_plainly(tmp_path, source).stdout == "1\nTrue\n1\n"
