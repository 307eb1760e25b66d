from dpctl import SyclQueue
from dpnp import ones, where

if (a := ones(4, sycl_queue=SyclQueue())) is not None:
    b = ones(4)
    mask = a < b  #! DPM104 a < b
    c = where(mask, a, b)  #! DPM104 where(mask, a, b)
