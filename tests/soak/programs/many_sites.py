"""Allocates from 3,000 lines, so that its report is long."""

import dpctl
import dpctl.memory

queue = dpctl.SyclQueue()
code = "\n".join(f"kept.append(memory({64 + n % 50}, queue=queue))" for n in range(3000))
kept = []
exec(compile(code, "generated.py", "exec"), {"kept": kept, "memory": dpctl.memory.MemoryUSMDevice, "queue": queue})
print("last line", flush=True)
