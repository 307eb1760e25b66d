import dpctl
import dpnp as np

queue = dpctl.SyclQueue()
a = np.ones((3, 3))
b = np.ones((3, 3), sycl_queue=queue)
print(np.matmul(a, b))  #! DPM104 np.matmul(a, b)
print(a @ b)  #! DPM104 a @ b
