"""Every form of a secret is redacted, nothing that only looks like one is, and hostile text costs no more than other.

Samples have a `|` in each token, taken out before use: nobody's scanner shall take this file for a leak.
"""

from __future__ import annotations

import re
import shlex
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchd.parse import secrets

FORMS = [
    # rule, text with the secret in «»
    ("pem", "«-----BEGIN RSA PRIV|ATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIV|ATE KEY-----»\nafter"),
    ("pem", "«-----BEGIN PRIV|ATE KEY-----\\nMIIEow\\n-----END PRIV|ATE KEY-----»"),
    ("pem", "«-----BEGIN OPENSSH PRIV|ATE KEY-----\nb3BlbnNzaC1rZXk»"),
    ("authorization", "Authorization: «Bearer abc.def-ghi»"),
    ("authorization", "> authorization: «Basic dXNlcjpwYXNz»\r\n"),
    ("authorization", "{'Authorization': '«Bearer changeme»'}"),
    ("authorization", r"{\"authorization\": \"«Bearer abcdef»\"}"),
    ("authorization", "headers=[(b'host', b'a'), (b'authorization', b'«Bearer token-abc123»')]"),
    ("authorization", "curl -H 'Authorization: «Token token=y_NbAk|Kc66ryYTWU»'"),
    ("authorization", "sent Bearer «abcdefgh12345678» to the hub"),
    ("authorization", "Token token=«y_NbAk|Kc66ryYTWUXYEu»"),
    ("cookie", "Cookie: «session=abcdef; theme=dark»"),
    ("cookie", "'set-cookie': '«id=abcdef; Path=/»'"),
    ("url_password", "https://user:«hunter2»@example.org/models"),
    ("url_password", "postgresql://watchd:«p%40ss:w»@db/watchd"),
    ("url_password", "proxy http://:«hunter2»@10.0.0.1:3128"),
    ("webhook", "POST https://hooks.slack.com/services/«T0001/B00|01/abcdefghijkl» 404"),
    ("webhook", "https://discord.com/api/webhooks/«1234567/abcd|efgh»"),
    ("signed_url", "GET https://cdn.example/x?a=1&X-Amz-Signature=«0123456789abcdef»&b=2"),
    ("signed_url", "https://acct.blob.example/c?se=2026&sig=«abcdEFGH%2Babc%3D»"),
    ("jwt", "token is «eyJhbGciOiJI|UzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl» here"),
    ("slack", "«xox|b-123456789012-abcdefghijkl»"),
    ("slack", "«xa|pp-1-A0123-456-abcdef»"),
    ("github", "«gh|p_0123456789abcdefghijABCDEFGHIJ012345»"),
    ("github", "git clone https://«github|_pat_11ABCDEFG0abcdefghijkl»@github.com/a/b"),
    ("gitlab", "«gl|pat-abcdefghij0123456789»"),
    ("aws", "id «AK|IAIOSFODNN7EXAMPLE»,"),
    ("hugging_face", "login with «hf|_abcdefghijklmnopqrstuvwxyz01234567»"),
    ("openai", "Incorrect key provided: «sk|-abcdefghijklmnopqrstuvwx»."),
    ("openai", "«sk|-proj-abcdefgh_ijkl-mnopqrstuv»"),
    ("openai", "«sk|-fake-key-of-a-case»"),
    ("vendor", "«nva|pi-abcdefghijklmnopqrstuvwx»"),
    ("vendor", "«gs|k_abcdefghijklmnopqrstuvwx»"),
    ("vendor", "«AI|zaSyA-abcdefghijklmnopqrstuvwxyz01234»"),
    ("pagerduty", "routed to «R0|ABCDEFGHIJKLMNOPQRSTUVWXYZ0123»"),
    ("flag", "python3 -m serve --api-key «abc123» --port 80"),
    ("flag", "python3 -m serve --api-key=«abc123» --port 80"),
    ("flag", "serve --api-key '«two words»' --port 80"),
    ("flag", 'serve --admin-api-key="«x y z»"'),
    ("flag", "serve --hf-token «changeme»"),
    ("flag", "serve --token «changeme»"),
    ("flag", "serve --db.password «tr0ub4dor»"),
    ("flag", "argv: ['serve', '--api-key', '«abc123»', '--port', '80']"),
    ("flag", "CMD [\"serve\", \"--api-key\", \"«abc123»\"]"),
    ("flag", "serve --api-keys=«key-one-of-two»"),
    ("field", "ServerArgs(port=1, api_key='«abc123»', host='0.0.0.0')"),
    ("field", "ServerArgs(admin_api_key=\"«it's»\")"),
    ("field", "non-default args: {'api_key': ['«a1b2', 'c3d4»'], 'port': 1}".replace("['«", "[«'").replace("»']", "'»]")),
    ("field", '{"api_key": "«abc\\"123»", "port": 1}'),
    ("field", r"body: {\"hf_token\": \"«short»\"}"),
    ("field", "HF_TOKEN=«changeme1» python3 serve.py"),
    ("field", "export OPENAI_API_KEY=«changeme1»"),
    ("field", "+ AWS_SECRET_ACCESS_KEY=«wJalr/XUtn|FEMI/K7MDENG+bPx»"),
    ("field", "client_secret: «changeme1»"),
    ("field", "password=«hunter2»"),
    ("field", "password: «hunter»"),
    ("field", "PGPASSWORD=«123456»"),
    ("field", "{'x-api-key': '«abc»'}"),
    ("field", "X-API-Key: «changeme-now»"),
    ("field", "GET /v1/models?api_key=«abc123»&model=x"),
    ("field", "accessToken='«abc123»'"),
    ("field", "routing_key: «0123456789abcdef0123456789abcdef»"),
    ("field", "token=«abcdef1234567890»"),
    ("field", "'key': '«9f86d081884c7d659a2f»'"),
    ("field", "api_key=«" + "a1" * 3000 + "» end"),
    ("field", "token: «MTk4NjIyNDgzNDcx|OTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs»".replace("token", "bot_secret")),
]  # fmt: skip

KEPT = [
    "tokenizer_path='/models/atlas-8b', tokenizer_mode='auto'",
    "max_total_tokens=4096, max_prefill_tokens=16384",
    "--tokenizer-path /models/atlas-8b --max-num-batched-tokens 8192 --skip-tokenizer-init",
    "--speculative-num-draft-tokens 16 --num-speculative-tokens=3",
    "num_draft_tokens=16",
    "eos_token_id=2, pad_token='<pad>', bos_token='<s>'",
    "image_token_id: 151655, image_newline_token=32000",
    "key_value=3 key_padding_mask=None num_key_value_heads: 8",
    "keyboard=us monkey=1 hockey: yes",
    "[10:00:00 TP0] Decode batch. #token: 5667, token usage: 0.13, gen throughput (token/s): 294.86",
    "#new-token: 459, #cached-token: 12",
    "KeyError: 'model.layers.3.mlp.weight'",
    "Missing key: 'model.layers.0.weight'; unexpected key: lm_head",
    "JSONDecodeError: unexpected token: '<' at line 1",
    "api_key=None, hf_token=None, password=null",
    "ServerArgs(api_key='EMPTY')",
    "allow_credentials=False",
    "[--api-key API_KEY] [--hf-token HF_TOKEN]",
    "Please set --hf-token or HF_TOKEN",
    'serve --api-key "$API_KEY" --port 80',
    "serve --api-key ${API_KEY}",
    "--tls-key /etc/serve/tls/quartz.key --ssl-keyfile=/etc/a.pem",
    "    token = next_token",
    "    self.api_key = args.api_key",
    "    api_key = os.environ.get('OPENAI_API_KEY')",
    "    key = self.keys[0]",
    "def serve(api_key: str = None, token: Optional[str] = None):",
    "PWD=/data/run OLDPWD=/data",
    "sort_key=lambda x: x, cache_key='abcdef1234567890'",
    "credentials: connection refused",
    "could not read secrets: permission denied",
    "Bearer authentication is required",
    "the authorization, if given, is ignored",
    "http://127.0.0.1:30000/health_generate",
    "ssh://watchd@gpu-01:22/data/log",
    "model=risk-assessment-large-2025-instruct-awq",
    "hf_transfer=1 hf_hub_download hf_xet",
    "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "assert chosen == (None, None)",
    "passed=4 forward_pass: 12 bypass=true",
]


def sample(text: str) -> tuple[str, str]:
    plain = text.replace("|", "")
    secret = plain[plain.index("«") + 1 : plain.index("»")]
    return plain.replace("«", "").replace("»", ""), secret


@pytest.mark.parametrize(("rule", "text"), FORMS)
def test_a_secret_of_each_form_gives_way_to_the_name_of_its_rule(rule, text):
    plain, secret = sample(text)
    clean, hits = secrets.redact(plain)
    before, after = plain.split(secret, 1)
    assert clean.replace("\n", "") == f"{before}[redacted:{rule}]{after}".replace("\n", "")
    assert hits == {rule: 1}
    assert clean.count("\n") == plain.count("\n")


@pytest.mark.parametrize("text", KEPT)
def test_what_only_looks_like_a_secret_stays(text):
    assert secrets.redact(text) == (text, {})


@pytest.mark.parametrize(("rule", "text"), FORMS)
def test_what_is_redacted_is_not_found_again(rule, text):
    clean, _ = secrets.redact(sample(text)[0])
    assert secrets.redact(clean) == (clean, {})


def test_a_value_that_was_given_away_is_redacted_wherever_it_stands():
    redactor = secrets.Redactor(["changeme-now"])
    clean, hits = redactor.redact("user said changeme-now, url /?q=changeme-now&x; not changeme-nowhere")
    assert clean == "user said [redacted:value], url /?q=[redacted:value]&x; not changeme-nowhere"
    assert hits == {"value": 2}


def test_a_value_is_found_as_json_a_shell_and_a_url_write_it():
    redactor = secrets.Redactor(['it"s a b/c'])
    for text in (r'"it\"s a b/c"', shlex.quote('it"s a b/c'), "it%22s%20a%20b%2Fc", 'it"s a b/c'):
        assert "b/c" not in redactor.redact(text)[0]
        assert "b%2Fc" not in redactor.redact(text)[0]


@pytest.mark.parametrize("value", ["EMPTY", "abc", "none", "", "default"])
def test_a_value_that_is_short_or_a_placeholder_is_not_hunted(value):
    text = "EMPTY abc none default cache"
    assert secrets.Redactor([value]).redact(text) == (text, {})


def test_a_user_may_add_forms():
    redactor = secrets.Redactor(forms={"badge": re.compile(r"BADGE-(?P<secret>\d{4})")})
    assert redactor.redact("BADGE-1234") == ("BADGE-[redacted:badge]", {"badge": 1})


def test_a_key_that_stretches_over_lines_is_found_in_lines_and_as_many_lines_come_back():
    lines = ("before", "-----BEGIN " + "PRIVATE KEY-----", "MIIEow", "-----END " + "PRIVATE KEY-----", "after")
    clean, hits = secrets.Redactor().redact_lines(lines)
    assert clean == ("before", "[redacted:pem]", "", "", "after")
    assert hits == {"pem": 1}
    assert secrets.Redactor().redact_lines(()) == ((), {})


LAUNCHES = [
    # words, command, values
    ("serve --api-key abc123 --port 80", 'serve --api-key "$API_KEY" --port 80', ("abc123",)),
    ("serve --api-key=abc123 --port 80", 'serve --api-key="$API_KEY" --port 80', ("abc123",)),
    ("serve --api-keys sk-one sk-two --tp 2", 'serve --api-keys "$API_KEYS" "$API_KEYS" --tp 2', ("sk-one", "sk-two")),
    ("serve --hf-token tok run.py", 'serve --hf-token "$HF_TOKEN" run.py', ()),
    ("HF_TOKEN=abcdef X='a b' serve", "HF_TOKEN=\"$HF_TOKEN\" X='a b' serve", ("abcdef",)),
    ("serve llm.api_key=abcdef", 'serve llm.api_key="$API_KEY"', ("abcdef",)),
    ("serve --api-key --port 80", "serve --api-key --port 80", ()),
    ("serve --api-key 12345678", 'serve --api-key "$API_KEY"', ("12345678",)),
    ("serve --tls-key /etc/tls/a.key --max-total-tokens 4096", "serve --tls-key /etc/tls/a.key --max-total-tokens 4096", ()),
    ("serve --tokenizer-path /m --pad-token x", "serve --tokenizer-path /m --pad-token x", ()),
    ("serve --stop 'a b' '$x'", "serve --stop 'a b' '$x'", ()),
    ("serve --db postgresql://u:hunter2@h/d", "serve --db 'postgresql://u:[redacted:url_password]@h/d'", ()),
    ("serve --set '{\"api_key\": \"abc\"}'", "serve --set '{\"api_key\": \"[redacted:field]\"}'", ()),
]  # fmt: skip


@pytest.mark.parametrize(("line", "command", "values"), LAUNCHES)
def test_a_launch_command_keeps_its_shape_and_loses_its_secrets(line, command, values):
    shown, words, found = secrets.redact_launch(shlex.split(line))
    assert shown == command
    assert found == values
    assert len(words) == len(shlex.split(line))
    assert not any(value in " ".join(words) for value in values)


@pytest.mark.parametrize(("line", "command", "values"), LAUNCHES)
def test_a_redacted_launch_command_is_not_redacted_again(line, command, values):
    assert secrets.redact(command) == (command, {})


@pytest.mark.parametrize(("line", "command", "values"), LAUNCHES)
def test_the_redacted_words_of_a_launch_give_the_same_command_again(line, command, values):
    _, words, _ = secrets.redact_launch(shlex.split(line))
    assert secrets.redact_launch(words) == (command, words, ())


@given(st.text(alphabet=st.sampled_from("key=token: \"'\\-[]$<>ab1./\n,@:{}PBEGINeyJsk-hf_")))
def test_nothing_raises_and_once_is_enough(text):
    clean, _ = secrets.redact(text)
    assert secrets.redact(clean) == (clean, {})
    assert clean.count("\n") == text.count("\n")


@given(st.lists(st.text(max_size=12)))
def test_no_command_line_raises(words):
    _, shown, _ = secrets.redact_launch(words)
    assert len(shown) == len(words)


HOSTILE = [
    "a", "key=", "key='", 'key="', "key=[", 'key=["', "key=key", "token ", "--a", "--api-key ", "-key ", "eyJ", "eyJ-", "eyJ.",
    "eyJaaaaaaaaaa.", "sk-", "sk-a ", "://", "://a:", "://a:b", "-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "-", "authorization: ",
    "authorization", "bearer ", "cookie: a", "cookie: a=", "xoxb-", "hf_", "\\", "\\\"", "secret = ", "password='\\'", "sig=", "?sig=",
    "_key", "aA", "AKIA", "R0", "discord.com/api/webhooks/",
]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_megabyte_of_the_beginnings_of_secrets_is_read_in_linear_time(unit):
    text = unit * (1024 * 1024 // len(unit))
    began = time.process_time()
    secrets.redact(text)
    assert time.process_time() - began < 10
