import dpnp


class Solution:
    def solve(self, n):
        x = dpnp.arange(n) * 2
        self.values = x.asnumpy()  #! DPM208 x.asnumpy()
        self.head = dpnp.asnumpy(x)[:3]  #! DPM208 dpnp.asnumpy(x)[:3]


solution = Solution()
solution.solve(100)
