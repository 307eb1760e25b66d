"""Run by each interpreter: a search runs nothing of the program, leaves no reference behind, and ends in time."""

import collections
import gc
import sys
import threading
import weakref

from _arrays import Block, expect, finish, ones

from dpmem import _native

RAN = []


def trap(name, answer=None):
    def ran(*arguments, **keywords):
        RAN.append(name)
        if answer is None:
            raise RuntimeError(name)
        return answer

    return ran


# --- nothing of the program runs ---
NAMES = ("__getattr__", "__eq__", "__hash__", "__repr__", "__str__", "__len__", "__iter__", "__getitem__", "__bool__")
NAMES += ("__contains__", "__next__", "__get__", "__call__", "__index__", "__dir__", "__format__", "__instancecheck__")
NAMES += ("__subclasscheck__", "__reduce_ex__", "__sizeof__", "keys", "values", "items", "get", "copy")


class Meta(type):
    __getattribute__ = trap("metaclass")
    __repr__ = trap("repr of a class")
    __instancecheck__ = trap("instancecheck of a class")


def trapped(base, metaclass=type):
    body = {name: trap(f"{base.__name__}.{name}") for name in NAMES}
    for name in ("payload", "__class__", "__dict__", "_name", "nbytes", "_pointer"):
        body[name] = property(trap(f"{base.__name__}.{name}"))
    body["slot"] = property(trap("slot"))
    body["__del__"] = trap(f"{base.__name__}.__del__", 0)
    return metaclass("Trapped", (base,), body)


class Plain:
    def __init__(self, array):
        object.__setattr__(self, "hidden", array)


class Slots:
    __slots__ = ("hidden",)

    def __init__(self, array):
        object.__setattr__(self, "hidden", array)


array = ones(50)
block = Block(array)
ways = []
for base in (Plain, Slots):
    ways.append(trapped(base)(array))
    ways.append(trapped(base, Meta)(array))
ways.append(trapped(list)())
list.append(ways[-1], array)
ways.append(trapped(dict)())
dict.__setitem__(ways[-1], "k", array)
ways.append(trapped(tuple)((0, array)))
ways.append(trapped(collections.deque)())
collections.deque.append(ways[-1], array)
ways.append(trapped(collections.OrderedDict)())
collections.OrderedDict.__setitem__(ways[-1], "k", array)
ways.append(trapped(Exception)())
BaseException.args.__set__(ways[-1], (array,))
ways.append(threading.local())
ways[-1].kept = array


class Key:
    def __init__(self):
        self.number = 3

    def __hash__(self):
        RAN.append("Key.__hash__")
        return 3

    def __eq__(self, other):
        RAN.append("Key.__eq__")
        return True

    __repr__ = trap("Key.__repr__")


ways.append({Key(): array})
ways.append([weakref.ref(ways[0], trap("weak reference")), array])


class Overridden(str):
    __hash__ = str.__hash__
    __eq__ = trap("Overridden.__eq__")
    __repr__ = trap("Overridden.__repr__")


ways.append({Overridden("text"): array})
sys.modules["odd"] = ways[0]
RAN.clear()
found = block.holders()
assert not RAN, RAN
del sys.modules["odd"]
lasts = [".hidden", ".hidden", ".hidden", "[0]", "['k']", "[1]", "[0]", "['k']", ".args[0]", ".kept", "[…]", "[1]"]
wanted = {f"__main__.ways[{index}]{last}" for index, last in enumerate([*lasts, "[…]"], 1)}
paths = {path for _, path in found}
assert paths == {"odd.hidden", "__main__.array", *wanted}, paths ^ wanted
RAN.clear()
ways.clear()
RAN.clear()

# --- no reference is left, and what is let go goes at once ---
gc.collect()
holder, buffer = [array], ones(51)


class Noted:
    gone = 0

    def __init__(self):
        self.buffer = buffer

    def __del__(self):
        Noted.gone += 1


def uses(argument):
    local = [argument]

    def suspended():
        inside = local
        yield inside

    generator = suspended()
    next(generator)
    watched = (argument, local, generator, sys._getframe(), holder, array, buffer, Noted, sys.modules)
    counts = [sys.getrefcount(it) for it in watched]
    for _ in range(3):
        Block(array).holders()
        Block(buffer).holders()
    assert [sys.getrefcount(it) for it in watched] == counts
    return sys._getframe()


frame = uses(Noted())
frame = None
gc.collect()
assert Noted.gone == 1, "a frame or its variables were kept"
noted = Noted()
Block(buffer).holders()
del noted
assert Noted.gone == 2, "what is let go goes at once"
tracked = len(gc.get_objects())
for _ in range(20):
    Block(array).holders()
assert len(gc.get_objects()) - tracked < 50, "searching piles nothing up"

# --- the collector is as it was, and does not run meanwhile ---
search, during = _native.holders_find, []


def watched(request):
    objects = request["universe"]
    request["universe"] = lambda: during.append(gc.isenabled()) or objects()
    return search(request)


_native.holders_find = watched
gc.disable()
Block(array).holders()
assert not gc.isenabled()
gc.enable()
Block(array).holders()
assert gc.isenabled()
_native.holders_find = search
assert during == [False, False], during

# --- frozen objects that a name leads to are found ---
frozen = {"f": [ones(52)]}
gc.collect()
gc.freeze()
expect(Block(frozen["f"][0]), ("container", "__main__.frozen['f'][0]"))
gc.unfreeze()

# --- a search that has no time says so ---
many = [[index] for index in range(200_000)]
late = block.found(seconds=0.0)
assert not late.complete
assert late.objects < 50_000, late.objects
assert block.found().complete

# --- other threads go on: with frames, generators, containers that come and go ---
stop = threading.Event()
failures = []


def churn(seed):
    try:
        kept = {}
        while not stop.is_set():
            one = ones(8)
            kept[seed % 7] = [one, {"k": (one, lambda one=one: one)}]
            step = (item for item in [one, one])
            next(step)
            seed += 1
            sorted(range(50), key=lambda number, one=one: -number)
            if len(kept) > 5:
                kept.clear()
    except BaseException as error:
        failures.append(error)


threads = [threading.Thread(target=churn, args=(index,), daemon=True) for index in range(3)]
interval = sys.getswitchinterval()
sys.setswitchinterval(1e-5)
del many
for thread in threads:
    thread.start()
for _ in range(40):
    assert ("global", "__main__.array") in block.holders()
    assert not failures, failures
stop.set()
for thread in threads:
    thread.join()
sys.setswitchinterval(interval)
assert not failures, failures
expect(block, ("container", "__main__.holder[0]"), ("global", "__main__.array"))
finish()
