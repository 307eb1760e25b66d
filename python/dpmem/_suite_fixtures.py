"""What a test's own fixtures and its instance hold: memory that goes when the test does, and so is no leak.

Reached from the values of its fixtures of function scope, its instance and what pytest keeps for it, over everything
but what outlives the test: modules and their contents, classes, and pytest's own objects, which lead everywhere.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import pytest

from dpmem import _holders

#: Where the search gives up; what it hasn't reached by then counts as held by something else.
MOST_OBJECTS = 200_000
_FOREIGN = ("_pytest", "pytest", "pluggy")


class Fixtures:
    """The fixtures of function scope that are set up; to be registered as a plugin."""

    def __init__(self) -> None:
        self._active: list[pytest.FixtureDef[Any]] = []
        # Names of those that are over, whose values pytest still keeps for the test.
        self._over: set[str] = set()

    @pytest.hookimpl(trylast=True)
    def pytest_fixture_post_finalizer(self, fixturedef: pytest.FixtureDef[Any]) -> None:
        """Note that one is over."""
        if any(each is fixturedef for each in self._active):
            self._active = [each for each in self._active if each is not fixturedef]
            self._over.add(fixturedef.argname)

    @pytest.hookimpl(tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> None:
        """Note one that begins; pytest itself goes on to set it up."""
        if fixturedef.scope == "function":
            self._active.append(fixturedef)
            self._over.discard(fixturedef.argname)

    def held_addresses(self, item: pytest.Item) -> list[int]:
        """Addresses of the arrays and memory objects that go with the test."""
        roots = [fixture.cached_result[0] for fixture in self._active if fixture.cached_result is not None]
        kept = getattr(item, "funcargs", None) or {}
        roots += [kept[name] for name in self._over if name in kept]
        # Not `item.instance`, which would make one anew after the test.
        mine = vars(item)
        return _arrays_from([*roots, item.stash, mine.get("_instance"), mine.get("_obj"), mine.get("_testcase")])


def _arrays_from(roots: Iterable[Any]) -> list[int]:
    lasting = _lasting()
    # Roots may be pytest's own (`monkeypatch` holds what it will put back); what they lead to may not.
    pending = [root for root in roots if id(root) not in lasting and not isinstance(root, pytest.FixtureRequest)]
    seen = {id(one) for one in pending}
    addresses = []
    while pending and len(seen) < MOST_OBJECTS:
        found = pending.pop()
        address = _holders.address_of(found)
        if address:
            addresses.append(address)
        for next_ in gc.get_referents(found):
            if id(next_) not in seen and id(next_) not in lasting and not _is_foreign(next_):
                seen.add(id(next_))
                pending.append(next_)
    return addresses


def _is_foreign(found: object) -> bool:
    kind = type(found)
    if issubclass(kind, (type, ModuleType)):
        return True
    module = type.__getattribute__(kind, "__module__")
    return isinstance(module, str) and module.partition(".")[0] in _FOREIGN


def _lasting() -> set[int]:
    """Ids of what modules hold by name, and of their namespaces."""
    lasting = set()
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType):
            names = vars(module)
            lasting.add(id(names))
            lasting.update(map(id, names.values()))
    return lasting
