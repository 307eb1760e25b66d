"""Arrays for programs that every interpreter at hand runs: dpnp's where it is installed, else stand-ins for them.

A stand-in has what the search for holders looks at: a memory object with an address, a `usm_ndarray` that refers to it,
a `dpnp_array` that refers to that. Addresses are made up.
"""

import gc
import importlib.util
import itertools
import sys
import types

from dpmem import _holders

REAL = importlib.util.find_spec("dpnp") is not None

if REAL:
    from dpmem import _icd

    _icd.use_pip_runtime()
    import dpnp

    def ones(count):
        return dpnp.ones(count, dtype="f4")

else:
    _next = itertools.count(0x1000_0000_0000, 1 << 20)

    class _Memory:
        __slots__ = ("_pointer", "nbytes")

        def __init__(self, nbytes):
            self._pointer, self.nbytes = next(_next), nbytes

    class MemoryUSMDevice(_Memory):
        __slots__ = ()

    class usm_ndarray:
        __slots__ = ("_pointer", "nbytes", "usm_data")

        def __init__(self, memory, offset, nbytes):
            self._pointer, self.nbytes, self.usm_data = memory._pointer + offset, nbytes, memory

    class dpnp_array:
        __slots__ = ("_array_obj",)

        def __init__(self, usm):
            self._array_obj = usm

        def get_array(self):
            return self._array_obj

        def __getitem__(self, part):
            whole, first, last = self._array_obj, part.start or 0, part.stop
            return dpnp_array(usm_ndarray(whole.usm_data, 4 * first, 4 * (last - first)))

        def sum(self):
            raise NotImplementedError

    def ones(count):
        return dpnp_array(usm_ndarray(MemoryUSMDevice(4 * count), 0, 4 * count))

    for _name, _cls in (
        ("dpctl.memory", MemoryUSMDevice),
        ("dpctl.tensor._usmarray", usm_ndarray),
        ("dpnp.dpnp_array", dpnp_array),
    ):
        sys.modules[_name] = _module = types.ModuleType(_name)
        setattr(_module, _cls.__name__, _cls)
    del _name, _cls, _module


class Block:
    """Where an array lies. Holds nothing."""

    def __init__(self, array):
        usm = array.get_array()
        self.where = (usm.usm_data._pointer, usm.usm_data.nbytes)

    def found(self, **options):
        return _holders.find([self.where], pending=set(), **options)

    def row(self, **options):
        (row,) = self.found(**options).rows()
        return row

    def holders(self):
        return sorted((kind, path) for kind, path, _, _ in self.row()[3])


FAILED = []
CHECKED = []


def expect(block, *wanted):
    """Compare the holders of a block with what is wanted: pairs of kind and path, all of them."""
    found = block.holders()
    line = sys._getframe(1).f_lineno
    CHECKED.append(line)
    if found != sorted(wanted):
        FAILED.append(f"line {line}: found {found}, expected {sorted(wanted)}")


def finish():
    gc.collect()
    print(len(CHECKED))
    sys.exit("\n".join(FAILED) or 0)
