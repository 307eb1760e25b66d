# Worker threads put their intermediate results where all can see them; they are never taken out.
# expect: DPM201 at result
# allow: DPM207 at result
import threading

import dpnp

x = dpnp.linspace(0, 1, 65_536, dtype=dpnp.float32)
dpnp.sin(x).sycl_queue.wait()


def work(first, shared, lock):
    for i in range(first, first + 20):
        result = dpnp.add(x, i)  # @result
        with lock:
            shared[i] = result


def main():
    shared, lock = {}, threading.Lock()
    threads = [threading.Thread(target=work, args=(100 * t, shared, lock)) for t in range(3)]
    for thread in threads:
        thread.start()
        thread.join()
    print(len(shared))


main()
