"""runtime/connectors/errors.py: a client library that is not installed is named together with what to install."""

from __future__ import annotations

import json

import pytest

from understudy import ConnectorError, MissingExtra
from understudy.runtime.connectors.errors import check_extra, require


def test_a_missing_client_library_says_what_to_install() -> None:
    wanted = r'^KafkaSource needs no-such-client: pip install "understudy\[kafka\]"$'
    with pytest.raises(MissingExtra, match=wanted) as raised:
        require("no_such_client", extra="kafka", wanted_by="KafkaSource")
    assert isinstance(raised.value, ConnectorError)
    assert isinstance(raised.value, ImportError)
    assert raised.value.name == "no_such_client"
    with pytest.raises(MissingExtra, match=wanted):
        check_extra("no_such_client", extra="kafka", wanted_by="KafkaSource")
    with pytest.raises(MissingExtra, match="needs no-such-client"):
        require("no_such_client.inner", extra="kafka", wanted_by="KafkaSource")


def test_a_library_that_is_there_is_imported() -> None:
    assert require("json", extra="kafka", wanted_by="KafkaSource") is json


def test_a_module_that_is_missing_inside_of_a_library_is_not_hidden() -> None:
    with pytest.raises(ModuleNotFoundError) as raised:
        require("json.no_such_part", extra="kafka", wanted_by="KafkaSource")
    assert not isinstance(raised.value, MissingExtra)
