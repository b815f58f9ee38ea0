"""`bot_data` as handlers have it: a dictionary that touches only what it is asked for.

The library's users may do with it whatever can be done with a dictionary, so it is one, and every
way into one is led to `bot/turns/touched.py`.
"""

from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Any, Final, Self

from bot.turns.touched import MISSING, Touched

# Whoever looks at a dictionary from C, as `json` does, takes one without entries of its own for
# empty, and asks no further.
_FILLED: Final = {"": None}
_NO_DEFAULT: Final = object()


class BotView(dict[Any, Any]):
    """A dictionary over what somebody has touched, and later over what the process has."""

    def __init__(self, touched: Touched) -> None:
        super().__init__(_FILLED)
        self._touched = touched

    def __getitem__(self, key: Any) -> Any:  # noqa: ANN401  # as a dictionary's
        value = self._touched.now.touch(key)
        if value is MISSING:
            raise KeyError(key)
        return value

    def __setitem__(self, key: Any, value: Any) -> None:  # noqa: ANN401  # as a dictionary's
        self._touched.now.put(key, value)

    def __delitem__(self, key: Any) -> None:  # noqa: ANN401  # as a dictionary's
        self._touched.now.drop(key)

    def __contains__(self, key: object) -> bool:
        return self._touched.now.touch(key) is not MISSING

    def __iter__(self) -> Iterator[Any]:
        return iter(self._touched.now.names())

    def __reversed__(self) -> Iterator[Any]:
        return reversed(self._touched.now.names())

    def __len__(self) -> int:
        return len(self._touched.now.names())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and self.copy() == dict(other.items())

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # as a dictionary's

    def __repr__(self) -> str:
        return repr(self.copy())

    def __or__(self, other: Any) -> dict[Any, Any]:  # noqa: ANN401  # a plain one comes of it
        return self.copy() | dict(other)

    def __ror__(self, other: Any) -> dict[Any, Any]:  # noqa: ANN401  # a plain one comes of it
        return dict(other) | self.copy()

    def __ior__(self, other: Any) -> Self:  # noqa: ANN401  # as a dictionary's
        self.update(other)
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:  # noqa: ANN401  # pickle's own, and copy's
        return dict, (self.copy(),)

    def keys(self) -> KeysView[Any]:  # type: ignore[override]  # looks in here, not into the base
        """As a dictionary's."""
        return KeysView(self)

    def values(self) -> ValuesView[Any]:  # type: ignore[override]  # looks in here, not into the base
        """As a dictionary's."""
        return ValuesView(self)

    def items(self) -> ItemsView[Any, Any]:  # type: ignore[override]  # looks in here, not into the base
        """As a dictionary's."""
        return ItemsView(self)

    def copy(self) -> dict[Any, Any]:
        """All of it, as a plain dictionary."""
        return dict(self.items())

    def get(self, key: Any, default: Any = None) -> Any:  # noqa: ANN401  # as a dictionary's
        """As a dictionary's."""
        value = self._touched.now.touch(key)
        return default if value is MISSING else value

    def setdefault(self, key: Any, default: Any = None) -> Any:  # noqa: ANN401  # as a dictionary's
        """As a dictionary's."""
        here = self._touched.now
        if here.touch(key) is MISSING:
            here.offer(key, default)
        return here.touch(key)

    def pop(self, key: Any, default: Any = _NO_DEFAULT) -> Any:  # noqa: ANN401  # as a dictionary's
        """As a dictionary's."""
        value = self._touched.now.touch(key)
        if value is not MISSING:
            self._touched.now.drop(key)
            return value
        if default is _NO_DEFAULT:
            raise KeyError(key)
        return default

    def popitem(self) -> tuple[Any, Any]:
        """As a dictionary's: the last one."""
        for key in reversed(self):
            return key, self.pop(key)
        raise KeyError("popitem(): dictionary is empty")

    def clear(self) -> None:
        """As a dictionary's."""
        for key in self:
            del self[key]

    def update(self, given: Any = (), /, **more: Any) -> None:  # noqa: ANN401  # as a dictionary's
        """As a dictionary's."""
        for key, value in dict(given, **more).items():
            self[key] = value
