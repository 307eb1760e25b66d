import dpnp

x = dpnp.ones((100, 100))
for _ in range(50):
    x *= 0.5
    print("norm", dpnp.linalg.norm(x))  #! DPM403 print("norm", dpnp.linalg.norm(x))
    last = x.max().item()  #! DPM403 x.max().item()
    print(f"{x.sum()} at the end")  #! DPM403 print(f"{x.sum()} at the end")
