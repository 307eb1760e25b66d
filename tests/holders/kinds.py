"""Run by each interpreter: every kind of holder, with the path that a person would write."""

import asyncio
import builtins
import collections
import contextlib
import contextvars
import dataclasses
import functools
import gc
import sys
import threading
import types
import weakref

from _arrays import REAL, Block, expect, finish, ones


# --- names, containers, attributes ---
def fresh(hold):
    """A new array, handed to `hold`; where it lies."""
    array = ones(16)
    hold(array)
    return Block(array)


def assign(name):
    def hold(array):
        globals()[name] = array

    return hold


expect(fresh(assign("weights")), ("global", "__main__.weights"))
weights = globals()["weights"]
alias = weights
expect(Block(alias), ("global", "__main__.alias"), ("global", "__main__.weights"))
view = alias[2:4]
expect(Block(alias), ("global", "__main__.alias"), ("global", "__main__.weights"), ("view", "__main__.view"))
del alias, weights
expect(Block(view), ("view", "__main__.view"))
del view

kept = [None, None]
expect(fresh(kept.append), ("container", "__main__.kept[2]"))
table = {}
expect(fresh(functools.partial(table.__setitem__, "a b")), ("container", "__main__.table['a b']"))
expect(fresh(functools.partial(table.__setitem__, (1, "x"))), ("container", "__main__.table[(1, 'x')]"))
nested = {"layers": [{"w": []}]}
expect(fresh(nested["layers"][0]["w"].append), ("container", "__main__.nested['layers'][0]['w'][0]"))
queue = collections.deque([0, 0])
expect(fresh(queue.append), ("container", "__main__.queue[2]"))
groups = collections.defaultdict(list)
expect(fresh(groups["q"].append), ("container", "__main__.groups['q'][0]"))
ordered = collections.OrderedDict()
expect(fresh(functools.partial(ordered.__setitem__, 3)), ("container", "__main__.ordered[3]"))


class Identity:
    def __init__(self, array):
        self.array = array


members = set()
expect(fresh(lambda array: members.add(Identity(array))), ("container", "__main__.members{…}.array"))
Pair = collections.namedtuple("Pair", "left right")
pair = None


def keep_pair(array):
    global pair
    pair = Pair(1, array)


expect(fresh(keep_pair), ("attribute", "__main__.pair.right"))


@dataclasses.dataclass
class Settings:
    weight: object = None


@dataclasses.dataclass
class Slotted:
    __slots__ = ("weight",)
    weight: object


class Derived(Slotted):
    pass


settings, slotted, derived = Settings(), Slotted(None), Derived(None)
for name in ("settings", "slotted", "derived"):
    expect(fresh(functools.partial(setattr, globals()[name], "weight")), ("attribute", f"__main__.{name}.weight"))


class Model:
    shared = None

    def __init__(self):
        self.parts = {"head": Settings()}

    def method(self):
        return self

    @functools.lru_cache(maxsize=2)  # noqa: B019
    def table(self, size):
        return ones(size)


model = Model()
expect(fresh(functools.partial(setattr, Model, "shared")), ("attribute", "__main__.Model.shared"))
expect(
    fresh(functools.partial(setattr, model.parts["head"], "weight")),
    ("container", "__main__.model.parts['head'].weight"),
)
hook = Model().method
expect(fresh(functools.partial(setattr, hook.__self__, "extra")), ("attribute", "__main__.hook.__self__.extra"))
module = types.ModuleType("plugins")
sys.modules["plugins"] = module
expect(fresh(functools.partial(setattr, module, "buffer")), ("global", "plugins.buffer"))
expect(fresh(lambda array: setattr(functools, "left_over", array)), ("global", "functools.left_over"))
del functools.left_over


class Mapping(dict):
    pass


mapping = Mapping()
expect(fresh(functools.partial(mapping.__setitem__, "k")), ("container", "__main__.mapping['k']"))
expect(fresh(functools.partial(setattr, mapping, "side")), ("attribute", "__main__.mapping.side"))
weak = weakref.WeakValueDictionary()
iterator = None


def keep_iterator(array):
    global iterator
    iterator = iter([array])


expect(fresh(keep_iterator), ("container", "__main__.iterator → list[0]"))

history = [{"step": [None, None]}]
last = fresh(history[0]["step"].append)
(detail,) = last.found().details(last.where[0])
assert (detail["root"], detail["owner"], detail["owner_len"]) == ("__main__.history", "__main__.history", 1), detail
assert (detail["cache"], detail["unreachable"]) == (None, False), detail

# --- functions ---
callbacks = []


def register():
    lookup, other = ones(17), 1
    callbacks.append(lambda i: lookup[i] + other)
    return Block(lookup)


expect(register(), ("closure", "__main__.callbacks[0] → closure lookup"))


def positional(first, second=None, third=(0,), *rest, fourth=None):
    return first


positional.__defaults__ = (None, [])
expect(fresh(positional.__defaults__[1].append), ("default", "default of __main__.positional(third)[0]"))
positional.__kwdefaults__["fourth"] = {}
expect(
    fresh(functools.partial(positional.__kwdefaults__["fourth"].__setitem__, "k")),
    ("default", "default of __main__.positional(fourth)['k']"),
)


class Owner:
    def act(self, cache={}):  # noqa: B006
        return cache


expect(
    fresh(functools.partial(Owner.act.__defaults__[0].__setitem__, 1)),
    ("default", "default of __main__.Owner.act(cache)[1]"),
)
expect(fresh(functools.partial(setattr, register, "memo")), ("attribute", "__main__.register.memo"))
partial = None


def keep_partial(array):
    global partial
    partial = functools.partial(positional, array)


expect(fresh(keep_partial), ("container", "__main__.partial.args[0]"))


# --- caches ---
@functools.lru_cache
def load(size):
    return ones(size)


@functools.cache
def load_all(size):
    return {"x": [ones(size)]}


@functools.lru_cache(maxsize=4)
def load_some(size):
    return {"x": ones(size)}


kept_by = Block(load_some(18)["x"])
(detail,) = kept_by.found().details(kept_by.where[0])
assert detail["cache"] == (4, 1, 1), detail
assert (detail["root"], detail["owner"]) == (
    "__main__.load_some",
    "functools lru_cache of __main__.load_some",
), detail
expect(Block(load_some(18)["x"]), ("cache", "functools lru_cache of __main__.load_some['x']"))
expect(Block(load(18)), ("cache", "functools lru_cache of __main__.load"))
expect(Block(load_all(18)["x"][0]), ("cache", "functools lru_cache of __main__.load_all['x'][0]"))
expect(Block(model.table(18)), ("cache", "functools lru_cache of __main__.Model.table"))


# --- generators and coroutines ---
def batches(count):
    for _ in range(count):
        batch = ones(19)
        where.append(Block(batch))
        yield


where = []
running = batches(3)
next(running)
expect(where.pop(), ("generator", "__main__.running → batches(): batch"))


class Nap:
    def __await__(self):
        yield


async def fetch(size):
    page = ones(size)
    where.append(Block(page))
    await Nap()


async def crawl():
    async with contextlib.AsyncExitStack():
        await fetch(20)


task = crawl()
task.send(None)
expect(where.pop(), ("generator", "__main__.task → crawl() → fetch(): page"))
task.close()


async def ticks():
    tick = ones(21)
    where.append(Block(tick))
    yield


async def first():
    global ticking
    ticking = ticks()
    await ticking.__anext__()


with contextlib.suppress(StopIteration):
    first().send(None)
expect(where.pop(), ("generator", "__main__.ticking → ticks(): tick"))


async def waits():
    local = ones(22)
    where.append(Block(local))
    await asyncio.sleep(0)
    return local


async def schedules():
    job = asyncio.ensure_future(waits())
    await asyncio.sleep(0)
    kind, path = where[-1].holders()[0]
    assert kind == "generator", (kind, path)
    assert path.endswith("waits(): local"), path
    await job


asyncio.run(schedules())
where.clear()


# --- exceptions ---
def step(number):
    work = ones(23)
    where.append(Block(work))
    raise ValueError(number)


errors = []
try:
    step(1)
except ValueError as error:
    errors.append(error)
expect(where.pop(), ("exception", "__main__.errors[0].__traceback__ → step(): work"))


def outer():
    try:
        step(2)
    except ValueError as inner:
        raise KeyError from inner


try:
    outer()
except KeyError as error:
    errors[:] = [error]
expect(where.pop(), ("exception", "__main__.errors[0].__cause__.__traceback__ → step(): work"))


class Failed(Exception):
    pass


failed = Failed()
expect(fresh(functools.partial(setattr, failed, "input")), ("exception", "__main__.failed.input"))
errors.clear()
try:
    step(3)
except ValueError as error:
    sys.last_value = error
expect(where.pop(), ("exception", "sys.last_value.__traceback__ → step(): work"))
del sys.last_value
try:
    step(4)
except ValueError:
    expect(where.pop(), ("exception", "the exception being handled.__traceback__ → step(): work"))


# --- running frames and threads ---
def computing():
    part = ones(24)
    shared = ones(25)

    def inner():
        return shared

    expect(Block(part), ("local", "kinds.py computing(): part"))
    expect(Block(shared), ("local", "kinds.py computing(): shared"))
    seen = locals()
    part = ones(26)
    Block(part).holders()
    assert seen["part"] is not part, "the program's own locals() are left alone"
    return inner


computing()


def passes(array):
    given = ones(27)
    expect(Block(given), ("local", "kinds.py passes(): given"))
    expect(Block(array), ("local", "kinds.py passes(): array"))


passes(ones(28))
namespace = {"expect": expect, "ones": ones, "Block": Block}
exec("def f():\n expect(Block(own), ('local', '<string> f(): own'))\nown = ones(29)\nf()", dict(namespace))


class Body:
    held = ones(30)
    expect(Block(held), ("local", "kinds.py Body: held"))


ready, done = threading.Event(), threading.Event()


def works(argument):
    buffer = ones(31)
    where.append(Block(buffer))
    where.append(Block(argument))
    ready.set()
    done.wait()


worker = threading.Thread(target=works, args=(ones(32),), name="loader")
worker.start()
ready.wait()
expect(
    where.pop(),
    ("thread", "thread 'loader': kinds.py works(): argument"),
    ("thread", "thread 'loader'._args[0]"),
)
expect(where.pop(), ("thread", "thread 'loader': kinds.py works(): buffer"))
done.set()
worker.join()
storage = threading.local()
expect(fresh(functools.partial(setattr, storage, "scratch")), ("thread", "__main__.storage.scratch"))
variable = contextvars.ContextVar("variable")
token = None


def keep_in_context(array):
    global token
    token = variable.set(array)


found = fresh(keep_in_context).holders()
assert [kind for kind, _ in found] == ["global"], found
assert found[0][1].startswith("__main__.token → Context"), found
variable.reset(token)


# --- cycles ---
class Node:
    def __init__(self):
        self.parent = self
        self.buffer = ones(33)
        where.append(Block(self.buffer))


gc.disable()
Node()
expect(where.pop(), ("cycle", "unreachable Node.buffer"))


def loops():
    ring = [ones(34)]
    ring.append(ring)
    where.append(Block(ring[0]))


loops()
expect(where.pop(), ("cycle", "unreachable list[0]"))


def fails():
    lost = ones(35)
    where.append(Block(lost))
    try:
        raise ValueError
    except ValueError as error:
        itself = error
    return itself


fails()
expect(where.pop(), ("exception", "unreachable ValueError.__traceback__ → fails(): lost"))
gc.collect()
gc.enable()

# --- notebooks ---
expect(fresh(functools.partial(setattr, builtins, "_")), ("notebook", "_"))
del builtins._
_ = ones(36)
expect(Block(_), ("global", "__main__._"))
In, Out, _oh = [], {}, {}
Out = _oh
expect(fresh(functools.partial(Out.__setitem__, 5)), ("notebook", "Out[5]"))
_5 = Out[5]
expect(Block(_5), ("notebook", "Out[5]"), ("notebook", "_5"))
expect(Block(_), ("notebook", "_"))


class Shell:
    user_ns_hidden = {}  # noqa: RUF012


shell = Shell()
expect(fresh(functools.partial(Shell.user_ns_hidden.__setitem__, "__")), ("notebook", "user_ns_hidden['__']"))

Parts = type("Parts", (), {"__module__": "IPython.core.interactiveshell"})
shell = Parts()
shell.InteractiveTB, shell.displayhook = Parts(), Parts()
shell._trait_values = {"last_execution_result": Parts()}
expect(fresh(functools.partial(setattr, shell.displayhook, "___")), ("notebook", "displayhook.___"))
expect(
    fresh(functools.partial(setattr, shell._trait_values["last_execution_result"], "result")),
    ("notebook", "the last result"),
)


def fails_in_a_cell():
    lost = ones(38)
    where.append(Block(lost))
    raise ValueError


try:
    fails_in_a_cell()
except ValueError as failed:
    shell.InteractiveTB.tb = failed.__traceback__
expect(where[-1], ("exception", "the last traceback → fails_in_a_cell(): lost"))
# Whoever prints a traceback asks for the variables; up to 3.12 the frame keeps the dict.
shell.InteractiveTB.tb.tb_next.tb_frame.f_locals
expect(where.pop(), ("exception", "the last traceback → fails_in_a_cell(): lost"))
del In, Out, _oh, _, _5, shell

# --- host copies ---
if REAL:
    import numpy as np
    from _arrays import dpnp

    copied = dpnp.ones(40).asnumpy()
    part = copied[3:]
    base = copied
    while isinstance(base, np.ndarray):
        base = base.base
    where.append(Block.__new__(Block))
    where[-1].where = (base._pointer, base.nbytes)
    del base
    expect(where[-1], ("host_copy", "__main__.copied"), ("host_copy", "__main__.part"))
    assert all(numpy for _, _, _, numpy in where.pop().row()[3])
    objects = np.empty(3, object)
    expect(fresh(functools.partial(objects.__setitem__, 1)), ("container", "__main__.objects[1]"))
    memory = dpnp.ones(41).get_array().usm_data
    held = Block.__new__(Block)
    held.where = (memory._pointer, memory.nbytes)
    expect(held, ("global", "__main__.memory"))
    raw = memoryview(dpnp.ones(42, usm_type="host").get_array().usm_data)
    held.where = (raw.obj._pointer, raw.obj.nbytes)
    expect(held, ("global", "__main__.raw"))

finish()
