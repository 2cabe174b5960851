import json
from typing import Any

import pytest

from verifier.redaction import without_secrets, without_secrets_in


@pytest.mark.parametrize(
    "name",
    "api_key apiKey API-KEY openai.api_key token hf_token auth_token aws_secret_access_key aws_session_token password"
    " db_password passwd clientSecret authorization credentials secrets private_key".split(),
)
def test_secrets_are_blotted_out_by_name(name: str) -> None:
    assert without_secrets({"x": [{name: "hunter2"}]}) == {"x": [{name: "***"}]}
    assert without_secrets({name: {"a": ["hunter2", 7], "b": None}}) == {name: {"a": ["***", "***"], "b": None}}


@pytest.mark.parametrize(
    "name", "api_key_env max_tokens token_budget tokenizer prompt_tokens key_mapping keyword secretary monkey".split()
)
def test_settings_stay(name: str) -> None:
    config = {"x": {name: "value", "n": 128, "on": True, "none": None}}
    assert without_secrets(config) == config


@pytest.mark.parametrize("nothing", [None, "", True])
def test_that_there_is_none_is_no_secret(nothing: Any) -> None:
    assert without_secrets({"password": nothing}) == {"password": nothing}


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("http://me:pw@host/x", "http://***@host/x"),
        ("postgresql+psycopg2://me:p@ss@host:5432/db", "postgresql+psycopg2://***@host:5432/db"),
        ("s3://AKIA:secret@bucket/a?endpoint_override=h", "s3://***@bucket/a?endpoint_override=h"),
        ("s3://b/a?access_key=AKIA&secret_key=x&region=y", "s3://b/a?access_key=***&secret_key=***&region=y"),
        ("https://host/?token=x#part", "https://host/?token=***#part"),
        ("mailto:me@host, /a@b, https://host/@me", "mailto:me@host, /a@b, https://host/@me"),
        ('{"a": "http://u:p@h"} and http://u:p@h', '{"a": "http://***@h"} and http://***@h'),
    ],
)
def test_addresses(address: str, shown: str) -> None:
    assert without_secrets_in(address) == shown
    assert without_secrets({"uri": address, "list": [address]}) == {"uri": shown, "list": [shown]}


def test_the_configuration_itself_is_left_alone() -> None:
    config = {"scorer": {"api_key": "x"}, "paths": ("http://u:p@h",)}
    before = json.dumps(config)
    without_secrets(config)
    assert json.dumps(config) == before
