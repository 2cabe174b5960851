"""Secrets taken out of what is written down or shown: configurations, run.json, tracked parameters, addresses."""

import re
from collections.abc import Mapping
from typing import Any

BLOTTED = "***"

# The last word of a name says what it holds: api_key_env and max_tokens hold no secret.
_SECRET_NAME = re.compile(
    r"(?:^|[_.-])(?:(?:api|access|account|auth|private|secret|session)[_-]?key|token|secret|password|passwd|pwd|"
    r"passphrase|credentials?|authorization|cookie|secrets|passwords)$",
    re.IGNORECASE,
)
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_USER = re.compile(r"(?<=://)[^/?#\s\"\\]*@")
_PARAMETER = re.compile(r"(?<=[?&;])([\w.-]{1,64})=[^&;#\s\"\\]+")


def without_secrets(value: Any) -> Any:
    """The same configuration with ``***`` in place of every secret; the value itself is left as it is.

    A secret is every text and number below a name that ends in api_key, access_key, token, secret, password and their
    like (not in max_tokens or api_key_env), and in any text the user and password of an address
    (``scheme://user:password@host``) and its query parameters of such names. Mappings keep their order, lists and
    tuples come back as lists.

    >>> without_secrets({"api_key": "sk-1", "api_key_env": "KEY", "uri": "http://me:pw@host/x?token=1"})
    {'api_key': '***', 'api_key_env': 'KEY', 'uri': 'http://***@host/x?token=***'}
    """
    if isinstance(value, Mapping):
        return {
            name: _blotted(item) if _names_secret(str(name)) else without_secrets(item) for name, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [without_secrets(item) for item in value]
    return without_secrets_in(value) if isinstance(value, str) else value


def without_secrets_in(text: str) -> str:
    """A text with the user, password and secret parameters of its addresses blotted out.

    >>> without_secrets_in("s3://AKIA:x/y@bucket is no address of ours, s3://AKIA:xy@bucket/a is")
    's3://AKIA:x/y@bucket is no address of ours, s3://***@bucket/a is'
    """
    if "://" not in text:
        return text
    return _PARAMETER.sub(_parameter, _USER.sub(f"{BLOTTED}@", text))


def _parameter(match: re.Match[str]) -> str:
    return f"{match[1]}={BLOTTED}" if _names_secret(match[1]) else match[0]


def _names_secret(name: str) -> bool:
    return bool(_SECRET_NAME.search(_CAPITAL.sub("_", name)))


def _blotted(value: Any) -> Any:
    """Everything below a secret name; that there is none (null, an empty text) is no secret."""
    if isinstance(value, Mapping):
        return {name: _blotted(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_blotted(item) for item in value]
    return value if value is None or value == "" or isinstance(value, bool) else BLOTTED
