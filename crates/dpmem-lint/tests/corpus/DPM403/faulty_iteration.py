import dpnp

x = dpnp.linspace(0, 1, 500)
total = 0.0
for value in x:  #! DPM403 x
    total += float(value)  #! DPM403 float(value)
values = [float(value) for value in x]  #! DPM403 float(value)
largest = max(x)  #! DPM403 x
