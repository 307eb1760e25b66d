"""A file about dpnp that uses none."""
import asyncio


@staticmethod
def f(a, /, b, *, c=1, **k):
    match a:
        case {"x": [1, *rest], **more} if rest:
            return more
        case int() | str() as value:
            return value
    return [y := b, y**2], lambda: (yield)


async def g():
    async with f as h, h:
        return [x async for x in h if await x]


class A[T]:
    type X = list[T]

    def m(self) -> None: ...


asyncio.run(g())
