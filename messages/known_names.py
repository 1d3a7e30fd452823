"""known_arguments: a call that does not fit says how it is written: which names there are, and which may be meant."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import wraps
from typing import Any, NoReturn, TypeVar, cast

from .error_frames import end_at_the_caller
from .missing_column import those_there_are
from .own_annotations import signature_of
from .shown import shown

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
"""A function: to a type checker a decorated one is what it was, so that its errors name it, and overloads stay."""

_NAMED = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_NEARLY_THE_SAME = 0.9
"""As one with an `s` too few."""
_OPEN = (inspect.Parameter.VAR_KEYWORD,)


def meant(found: str, known: Iterable[str]) -> str:
    """The end of a text about a wrong name: the one that is nearly the same, those known that begin or end with it, or
    the one most like it; empty if none is.
    """
    names = list(known)
    longer = [each for each in names if each.startswith(f"{found}_") or each.endswith(f"_{found}")]
    close = get_close_matches(found, names, 1, _NEARLY_THE_SAME) or longer or get_close_matches(found, names, 1)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


def there_are(found: str, known: Iterable[str]) -> str:
    """The same, with all that there are."""
    names = list(known)
    return f"; it has {those_there_are(found, names) if names else 'none'}"


def known_arguments(
    called: str = "",
    *,
    first: int = 0,
    also: Iterable[str] = (),
    accepted: Iterable[str] = (),
    elsewhere: Mapping[str, str] | None = None,
    example: str = "",
) -> Callable[[F], F]:
    """Decorates a function that the user calls as `called`, or by its own name. A call that does not fit raises
    TypeError, with what to write. The traceback of a refusal ends at the call.

    The parameters before `first` are not the user's. `also`: names that its `**options` take; `accepted`: taken, and
    not shown. `elsewhere`: what to write in place of names that are another call's. `example`: a call that fits.
    """

    def decorate(function: F) -> F:
        call = _Call(
            called or function.__name__, function, first, tuple(also), tuple(accepted), elsewhere or {}, example
        )

        @wraps(function)
        def checked(*values: Any, **named: Any) -> Any:
            __tracebackhide__ = True
            try:
                call.check(values, named)
            except TypeError as error:
                error.__traceback__ = None
                raise
            try:
                return function(*values, **named)
            except Exception as error:
                end_at_the_caller(error)
                raise

        return cast(F, checked)

    return decorate


class _Call:
    """What a function takes."""

    def __init__(
        self,
        called: str,
        function: Callable[..., Any],
        first: int,
        also: tuple[str, ...],
        accepted: tuple[str, ...],
        elsewhere: Mapping[str, str],
        example: str,
    ) -> None:
        every = list(signature_of(function).parameters.values())
        kinds = {each.kind for each in every}
        own = [each for each in every[first:] if each.kind in _NAMED]
        self._called, self._first, self._elsewhere = called, first, elsewhere
        self._known = [*(each.name for each in every[first:] if each.kind not in _OPEN), *also]
        self._accepted = {*self._known, *accepted, *(each.name for each in every[:first])}
        self._takes_any_name = inspect.Parameter.VAR_KEYWORD in kinds and not also
        self._by_place = [each.name for each in own if each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
        self._takes_any_number = inspect.Parameter.VAR_POSITIONAL in kinds
        self._required = [each for each in own if each.default is inspect.Parameter.empty]
        self._example = example or f"{called}({', '.join(map(_written, self._required))})"
        self._as_written = f": write {example}" if example else ""

    def check(self, values: Sequence[Any], named: Mapping[str, Any]) -> None:
        """Raises TypeError."""
        for name in named:
            if name not in self._accepted and (name in self._elsewhere or not self._takes_any_name):
                self._refuse_name(name)
        given = values[self._first :]
        if len(given) > len(self._by_place) and not self._takes_any_number:
            self._refuse_value(given[len(self._by_place) :], named)
        for name, value in zip(self._by_place, given, strict=False):
            if name in named:
                found = f"{shown(value)} by its place and {name}={shown(named[name])}"
                raise TypeError(f"{self._called}: {name} is given twice, {found}: leave one of them out")
        there = {*named, *self._by_place[: len(given)]}
        if missing := [each.name for each in self._required if each.name not in there]:
            verb = "is" if len(missing) == 1 else "are"
            raise TypeError(f"{self._called}: {' and '.join(missing)} {verb} missing: write {self._example}")

    def _refuse_name(self, name: str) -> NoReturn:
        if name in self._elsewhere:
            raise TypeError(f"{self._called} has no argument {name!r}: {self._elsewhere[name]}")
        there = f" There are {', '.join(self._known)}" if self._known else " There are none"
        near = meant(name, self._known) or "."
        raise TypeError(f"{self._called} has no argument {name!r}{near}{there}{self._as_written}")

    def _refuse_value(self, values: Sequence[Any], named: Mapping[str, Any]) -> NoReturn:
        value = values[0]
        if not self._known:
            raise TypeError(f"{self._called} takes no arguments, found {shown(value)}")
        number, names = len(self._by_place), ", ".join(self._by_place)
        takes = f"{number or 'no'} argument{'s' * (number > 1)} without {'their names' if number > 1 else 'its name'}"
        told = f"{self._called} takes {takes}{f' ({names})' if names else ''}"
        missing = [each.name for each in self._required if each.name not in self._by_place and each.name not in named]
        option = missing[0] if len(missing) == 1 else self._meant_by(value)
        if len(values) > 1:
            option = ""
        if option in self._known and option not in self._by_place:
            raise TypeError(f"{told}: write {self._called}({'..., ' * bool(names)}{option}={shown(value)})")
        ordinal = ("one", "a second", "a third")[number] if number < 3 else "another"
        there = f"There are {', '.join(self._known)}{self._as_written}"
        raise TypeError(f"{told}, found {ordinal}, {shown(value)}. {there}")

    def _meant_by(self, value: Any) -> str:
        """The option that a value is for which has no place in the call of an operator; "" where none is known."""
        if type(value) is str:
            return "how" if "how" in self._known else "name"
        return "parallelism" if type(value) is int and value > 0 else ""


def _written(parameter: inspect.Parameter) -> str:
    return parameter.name if parameter.kind is not inspect.Parameter.KEYWORD_ONLY else f"{parameter.name}=..."


def known_names(cls: type[T]) -> type[T]:
    """The same of what a dataclass is made of."""
    return known_names_with({})(cls)


def known_names_with(elsewhere: Mapping[str, str]) -> Callable[[type[T]], type[T]]:
    """The same, with what to write in place of names of other libraries."""

    def decorate(cls: type[T]) -> type[T]:
        made: Callable[..., Any] = cls.__init__
        cls.__init__ = known_arguments(cls.__name__, first=1, elsewhere=elsewhere)(made)  # type: ignore[method-assign]
        return cls

    return decorate
