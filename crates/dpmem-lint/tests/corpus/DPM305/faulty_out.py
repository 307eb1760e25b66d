import dpnp

a = dpnp.arange(12.0)
b = dpnp.ones(12)
c = dpnp.zeros(12)  #! DPM305 dpnp.zeros(12)
d = a + 1
dpnp.add(a, b, out=c)
e = dpnp.zeros_like(a)  #! DPM305 dpnp.zeros_like(a)
f = dpnp.sqrt(a, out=e)
