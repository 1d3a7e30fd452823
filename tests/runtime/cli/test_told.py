"""How commands fail, and what they leave behind."""

from __future__ import annotations

import warnings

import click
import pytest

from understudy.runtime.cli.output import INTERRUPTED, told
from understudy.runtime.connectors import ConnectorError


@pytest.mark.parametrize(
    ("error", "shown"),
    [(ConnectorError("no such folder"), click.ClickException), (KeyboardInterrupt(), SystemExit), (OSError(), OSError)],
)
def test_warnings_are_shown_as_before_when_a_command_is_over(error: BaseException, shown: type[BaseException]) -> None:
    before = warnings.showwarning

    @told
    def command() -> None:
        assert warnings.showwarning is not before
        raise error

    with pytest.raises(shown) as raised:
        command()
    assert warnings.showwarning is before
    if isinstance(raised.value, SystemExit):
        assert raised.value.code == INTERRUPTED
