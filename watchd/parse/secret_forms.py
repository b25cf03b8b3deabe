"""The forms by which a secret is known wherever it stands: one row per form, under a line that it matches.

Each pattern begins with a literal and repeats one class within bounds, so that hostile text costs linear time. The
group `secret` is what is replaced; without it the whole match is.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Form(NamedTuple):
    """A form and the name of its rule, as it stands in `[redacted:rule]`.

    needles  one of these stands, in small letters, in every text that holds the form: most texts hold none
    """

    rule: str
    needles: tuple[str, ...]
    pattern: re.Pattern[str]


_ALONE = r"(?<![A-Za-z0-9_])"
"""No letter, digit or underscore before: the secret is a word of its own."""

FORMS: tuple[Form, ...] = (
    # -----BEGIN RSA PRIVATE KEY-----\nMIIE…\n-----END RSA PRIVATE KEY-----
    Form("pem", ("private key-----",), re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?:(?:[^-]|-(?!----)){0,20000}-----END [A-Z ]{0,60}-----|[A-Za-z0-9+/=\s\\]{0,20000})")),
    # Authorization: Bearer abc.def    'authorization': 'Basic dXNlcjpwYXNz'    (b'authorization', b'Bearer abc')
    Form("authorization", ("authorization",), re.compile(r"(?i)authorization(?:\\{0,2}[\"'],\s{0,4}b?\\{0,2}[\"']|(?:\\{0,2}[\"'])?\s{0,4}[:=]\s{0,4}(?:b?\\{0,2}[\"'])?)(?P<secret>(?:(?:bearer|basic|token|digest|negotiate|apikey)\s{1,4})?[^\s\"',;)\\]{4,8192})")),
    # Bearer abc.def
    Form("authorization", ("bearer",), re.compile(r"(?i)\bbearer\s{1,4}(?!auth|token|scheme|header|format|realm|credential|is\b|was\b|method)(?P<secret>[A-Za-z0-9._~+/=-]{8,8192})")),
    # Token token=y_NbAkKc66ryYTWUXYEu
    Form("authorization", ("token token=",), re.compile(r"(?i)\btoken token=(?P<secret>[A-Za-z0-9+_-]{8,256})")),
    # Cookie: session=abc; theme=dark    'set-cookie': 'id=abc'
    Form("cookie", ("cookie",), re.compile(r"(?i)\b(?:set-)?cookie(?:\\{0,2}[\"'])?\s{0,4}[:,]\s{0,4}b?(?:\\{0,2}[\"'])?(?P<secret>[\w.-]{1,100}=[^\"'\n\\]{1,8192})")),
    # https://user:hunter2@example.org/    postgresql://watchd:hunter2@db/watchd
    Form("url_password", ("://",), re.compile(r"://[^\s/@:'\"\[]{0,256}:(?P<secret>[^\s/@'\"]{1,256})@")),
    # https://hooks.slack.com/services/T0001/B0001/abcdef    https://example.webhook.office.com/webhookb2/abc
    Form("webhook", ("hooks.slack", "/webhooks", "webhookb2", "api.telegram"), re.compile(r"(?:hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)|discord(?:app)?\.com/api/webhooks|webhook\.office\.com/webhookb2|api\.telegram\.org/bot)/?(?P<secret>[A-Za-z0-9/_:@.-]{8,512})")),
    # ?X-Amz-Signature=abc    &sig=abc
    Form("signed_url", ("signature=", "credential=", "-token=", "sig="), re.compile(r"(?i)[?&](?:x-(?:amz|goog)-(?:signature|credential|security-token)|signature|sig)=(?P<secret>[A-Za-z0-9%/+=._-]{8,4096})")),
    # eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl
    Form("jwt", ("eyj",), re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,8192}\.[A-Za-z0-9_-]{8,8192}(?:\.[A-Za-z0-9_-]{0,8192})?")),
    # xoxb-123456789012-abcdefghijkl    xapp-1-A01-123-abcdef
    Form("slack", ("xox", "xapp-"), re.compile(_ALONE + r"(?:xox[abceoprs]|xapp)-[A-Za-z0-9-]{8,400}")),
    # ghp_0123456789abcdefghij    github_pat_11ABCDEFG0abcdefghij
    Form("github", ("gh", "github_pat_"), re.compile(_ALONE + r"(?:gh[oprsu]_[A-Za-z0-9]{20,255}|github_pat_[A-Za-z0-9_]{20,255})")),
    # glpat-abcdefghij0123456789
    Form("gitlab", ("gl",), re.compile(_ALONE + r"gl(?:pat|dt|ptt|rt|soat|oas|cbt|imt|ft|agent|ffct)-[A-Za-z0-9_.-]{16,255}")),
    # AKIAIOSFODNN7EXAMPLE
    Form("aws", ("akia", "asia", "abia", "acca"), re.compile(_ALONE + r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9_])")),
    # hf_abcdefghijklmnopqrstuvwxyz01234567
    Form("hugging_face", ("hf_", "api_org_"), re.compile(_ALONE + r"(?:hf_|api_org_)[A-Za-z0-9]{20,255}(?![A-Za-z0-9_])")),
    # sk-abcdefghijklmnopqrstuvwx    sk-proj-…    sk-ant-api03-…
    Form("openai", ("sk-",), re.compile(r"(?<![A-Za-z0-9_-])sk-[A-Za-z0-9_-]{16,400}")),
    # nvapi-…    gsk_…    xai-…    r8_…    pplx-…    AIza…    npm_…    pypi-…    sk_live_…
    Form("vendor", ("nvapi-", "gsk_", "xai-", "r8_", "pplx-", "aiza", "npm_", "pypi-", "k_live_", "ya29."), re.compile(_ALONE + r"(?:nvapi-[A-Za-z0-9_-]{20,400}|gsk_[A-Za-z0-9]{20,400}|xai-[A-Za-z0-9]{20,400}|r8_[A-Za-z0-9]{20,400}|pplx-[A-Za-z0-9]{20,400}|AIza[A-Za-z0-9_-]{30,100}|npm_[A-Za-z0-9]{20,400}|pypi-[A-Za-z0-9_-]{40,400}|[rs]k_live_[A-Za-z0-9]{16,400}|ya29\.[A-Za-z0-9_-]{20,400})")),
    # R0ABCDEFGHIJKLMNOPQRSTUVWXYZ0123 (a routing key)    pdus+_0ABCDEFG_abcdefghijklmnop
    Form("pagerduty", ("r0", "+_"), re.compile(_ALONE + r"(?:R0[A-Z0-9]{30}(?![A-Za-z0-9_])|pd[a-z]{2}\+_[A-Za-z0-9_-]{16,200})")),
)  # fmt: skip
