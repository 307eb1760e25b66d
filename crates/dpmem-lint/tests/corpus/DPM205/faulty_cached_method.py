from functools import cache as remember

import dpnp as np


class Basis:
    @staticmethod
    @remember  #! DPM205 remember
    def matrix(n: int):
        result = np.eye(n)
        result[0, 0] = 2
        return result
