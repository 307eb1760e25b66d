# A service remembers its last error.
# expect: DPM203 at request
import dpnp


class Service:
    def __init__(self):
        self.last_error = None

    def handle(self, size):
        request = dpnp.ones(size, dtype=dpnp.float32)  # @request
        if size > 1_000_000:
            raise ValueError("too large")
        return float(request.sum())

    def serve(self, size):
        try:
            return self.handle(size)
        except ValueError as error:
            self.last_error = error
            return None


service = Service()
print([service.serve(size) for size in (1_000, 10_000, 4_000_000)])
