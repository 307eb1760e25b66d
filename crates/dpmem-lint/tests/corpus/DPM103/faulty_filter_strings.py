import dpctl
import dpctl as ctl
import dpnp as np

WHERE = "GPU"
x = np.ones(4, device="GPU:0")  #! DPM103 "GPU:0"
y = np.ones(4, device=WHERE)  #! DPM103 WHERE
queue = dpctl.SyclQueue("opencl:cpu:x")  #! DPM103 "opencl:cpu:x"
device = ctl.SyclDevice("level-zero:gpu")  #! DPM103 "level-zero:gpu"
z = x.to_device("cpu:0:1:2")  #! DPM103 "cpu:0:1:2"
