"""Which names of fields, flags and variables hold a secret, and which of their values plainly are none.

Every `…key`, `…token`, `…secret` and `…password` holds one unless the word before it says what else it is: a machine
that makes tokens for a living names a hundred things after them.
"""

from __future__ import annotations

import re
from enum import Enum


class Weight(Enum):
    """What a name says about its value."""

    NOTHING = "nothing"
    PERHAPS = "perhaps"
    """a secret where the value looks like one"""
    SURELY = "surely"


# max_total_tokens, apiKey, OPENAI_API_KEY, --hf-token, spec.api_key
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_PASSWORDS = frozenset({"password", "passwd", "passphrase", "secret"})
_MANY = frozenset({"passwords", "secrets", "credential", "credentials"})
"""As often a heading as a name: `credentials: connection refused`."""
_RUN_TOGETHER = frozenset(
    {"apikey", "apikeys", "authkey", "secretkey", "accesskey", "privatekey", "accesstoken", "authtoken", "hftoken"}
)
_OWNERS = frozenset(
    {"access", "admin", "api", "app", "auth", "bearer", "client", "hf", "private", "refresh", "secret", "session"}
)
"""Words that make a secret even of several: `api_keys`, `access_tokens`."""
_FILED = frozenset({"client", "private"})
"""Owners whose keys lie in files: `--client-key /etc/tls/client.key`."""

_OTHER_TOKENS = _set(
    """assistant audio begin beginning bos bot cached call cls count context decode decoded decoder draft drafted end eos eot
    extra final first forced generated guided image img input invalid kept last mask masked max mean min ms new next num of
    output pad padding per placeholder prefill prompt reserved response sampled seconds sep single special start stop system
    text think thinking time tool total unexpected unk unknown usage user video vision word"""
)
_OTHER_KEYS = _set(
    """adapter attention attr attribute best block bucket bucketing cache column compile config data dataset dedup dict
    duplicate env expected extra feature field file first foreign graph group hash head hidden idempotency image index input
    invalid item json kernel kv label last layer lookup lora lru map metric missing model module new next no num object old
    other output param parameter partition plan prefix primary public query rank registry request row sample shard sort state
    storage store string sub tensor text the tie top tree type unexpected unique unknown value weight with wrong"""
)

_PLACEHOLDERS = _set(
    """apikey auto bytes default disabled dummy empty enabled false bool int na nil none null off on optional password
    required secret secretstr self str string token true unset yes no"""
)
# 4096   16,384   0.83   -1   97%
_FIGURE = re.compile(r"[-+]?\d[\d.,_]{0,9}%?")
# /etc/serve/tls/server.key   ~/.ssh/id_ed25519   certs/server.pem
_PATH = re.compile(r"(?:~?|\.{1,2})/[\w.@+-]+(?:/[\w.@+-]+)*/?|[\w./-]{1,200}\.(?:key|pem|crt|cert|der|p12|json|txt)")
# tr0ub4dor-and-three   9f86d081884c7d65
_LIKELY = re.compile(r"(?=[^\d]{0,400}\d)(?=[^A-Za-z]{0,400}[A-Za-z])[A-Za-z0-9_\-+/=~]{12,400}")


def weigh(name: str) -> Weight:
    """What this name of a field, flag or variable says about its value."""
    last, before = _ending(name)
    if last in _PASSWORDS or last in _RUN_TOGETHER:
        return Weight.SURELY
    if last in _MANY:
        return Weight.PERHAPS
    if last == "pwd":
        # PWD alone is a shell's working directory.
        return Weight.SURELY if before and before != "old" else Weight.NOTHING
    if last in ("keys", "tokens"):
        return Weight.SURELY if before in _OWNERS else Weight.NOTHING
    if last not in ("key", "token"):
        return Weight.NOTHING
    if not before:
        return Weight.PERHAPS
    return Weight.NOTHING if before in (_OTHER_KEYS if last == "key" else _OTHER_TOKENS) else Weight.SURELY


# $API_KEY   ${API_KEY}   $(cat key)   {{ token }}   %(token)s   <token>   [redacted:field]
_STAND_IN = re.compile(
    r"\$\{?[A-Z_][A-Z0-9_]{0,63}\}?|\$\(.*|\{\{.*|%\(\w{1,64}\)s|<[\w -]{0,64}>|\[redacted:.*", re.DOTALL
)


def placeholder(value: str) -> bool:
    """Whether this stands where a value could: nothing, `None`, `***`, `$API_KEY`, or what was redacted before."""
    return len(set(value)) < 2 or value.lower() in _PLACEHOLDERS or bool(_STAND_IN.fullmatch(value))


def spares(name: str, value: str, *, literal: bool) -> bool:
    """Whether the value behind the name of a secret is plainly none: a placeholder, a figure, a path, source code.

    `literal`: it stood in quotes or on a command line, where nothing is code.
    """
    bare = value.strip()
    last, before = _ending(name)
    # A usage text has the name again: [--api-key API_KEY]
    metavar = bare.strip("[]{}") in (name.strip("-").replace("-", "_").upper(), last.upper())
    if placeholder(bare) or metavar:
        return True
    if last in _PASSWORDS:
        return not literal and _code(bare) and (weigh(bare) is not Weight.NOTHING or "(" in bare or "[" in bare)
    if before not in _OWNERS and _FIGURE.fullmatch(bare):
        return True
    if before not in _OWNERS - _FILED and _PATH.fullmatch(bare):
        return True
    return not literal and _code(bare)


def likely(value: str) -> bool:
    """Whether the value of a field that only perhaps holds a secret looks like one."""
    return bool(_LIKELY.fullmatch(value))


def _ending(name: str) -> tuple[str, str]:
    """The last word of a name and the one before it, in small letters; empty where there is none."""
    words = [word.lower() for word in _WORD.findall(name[-80:])]
    if words and words[-1].endswith("password"):
        words[-1:] = [words[-1].removesuffix("password"), "password"]  # PGPASSWORD, dbpassword
    return (words[-1] if words else ""), (words[-2] if len(words) > 1 else "")


def _code(value: str) -> bool:
    """Whether this may be an expression: `next_token`, `args.api_key`, `os.environ.get(`, `self.tokens[0]`."""
    head = re.split(r"[(\[]", value, maxsplit=1)[0]
    parts = head.split(".")
    if not all(part.isidentifier() and (len(part) <= 12 or not re.search(r"\d", part)) for part in parts):
        return False
    return len(parts) > 1 or head != value or not re.search(r"\d", head)
