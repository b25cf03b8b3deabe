"""The check in the source is told in the flags of the command line."""

from __future__ import annotations

import pytest

from tests.support.diagnosed import case_of, diagnosed
from watchd.diagnosis import guard
from watchd.model import Cause, Confidence, Diagnosis, Guard, SourceExcerpt

LOG = """
    Traceback (most recent call last):
      File "<frozen runpy>", line 198, in _run_module_as_main
      File "/opt/sglang/launch_server.py", line 18, in <module>
        server_args = prepare_server_args(sys.argv[1:])
      File "/opt/sglang/srt/server_args.py", line 2423, in _handle_speculative_decoding
        self.speculative_eagle_topk is None
    AssertionError
    """
COMMAND = (
    "python3 -m sglang.launch_server --model-path /m --speculative-algorithm EAGLE3 "
    "--speculative-eagle-topk 1 --speculative-num-draft-tokens 16"
)
EAGLE3 = Guard(
    condition="self.speculative_eagle_topk is None and self.speculative_num_draft_tokens is None",
    names=("speculative_eagle_topk", "speculative_num_draft_tokens"),
    requires=("speculative_eagle_topk", "speculative_num_draft_tokens", "speculative_num_steps"),
    enclosing=("self.speculative_num_steps is None",),
    line=2423,
)


def an_excerpt(check: Guard | None, *, matches: bool | None = True) -> SourceExcerpt:
    return SourceExcerpt(
        path="/opt/sglang/srt/server_args.py", first_line=2420, lines=(), guard=check, sha256="0", matches_log=matches
    )


def refused(check: Guard | None, *, command: str = COMMAND, matches: bool | None = True) -> Diagnosis:
    found = diagnosed(case_of(LOG, an_excerpt(check, matches=matches), command=command))
    assert found.cause is Cause.LAUNCH_ARGUMENT
    assert found.confidence is not Confidence.CERTAIN
    return found


def test_the_summary_says_which_flag_is_missing_while_which_are_given() -> None:
    assert refused(EAGLE3).summary == (
        "Launch refused: --speculative-num-steps is missing while --speculative-eagle-topk and "
        "--speculative-num-draft-tokens are given; server_args.py:2423 accepts the three together or not at all."
    )


def test_the_advice_names_every_flag_that_the_check_ties_together_and_stays_short() -> None:
    advice = refused(EAGLE3).advice
    assert advice[0] == (
        "Add --speculative-num-steps, or remove --speculative-eagle-topk and --speculative-num-draft-tokens."
    )
    assert len(" ".join(advice[:3])) <= 400


def test_without_source_the_check_is_still_known_to_be_one_of_arguments() -> None:
    found = refused(None)
    assert "server_args.py:2423" in found.summary
    assert "--speculative-eagle-topk" in " ".join(found.advice)


def test_a_file_that_changed_since_the_crash_proves_nothing() -> None:
    assert "together or not at all" not in refused(EAGLE3, matches=False).summary


def test_a_flag_that_the_condition_denies_must_go_whatever_the_message_says() -> None:
    check = Guard(
        condition="not self.enable_mixed_chunk", names=("enable_mixed_chunk",), requires=("enable_mixed_chunk",), enclosing=(), line=9
    )  # fmt: skip
    found = refused(check, command="python3 -m s --enable-mixed-chunk --tp 2")
    assert found.advice[0].startswith("Remove --enable-mixed-chunk")


def test_a_value_that_the_check_does_not_take_is_named_by_its_flag() -> None:
    check = Guard(condition="step % self.page_size == 0", names=("chunked_prefill_size", "page_size"), requires=(), enclosing=(), line=9)  # fmt: skip
    found = refused(check, command="start.sh --chunked-prefill-size 3000")
    assert "--chunked-prefill-size" in found.summary
    assert "--page-size" in found.advice[0]


@pytest.mark.parametrize(
    ("attribute", "typed"),
    [
        ("tp_size", "--tp"),
        ("graph_max_batch", "--graph-max"),
        ("max_batch_size", "--max_batch_size"),
        ("speculative.width", "--speculative.width"),
    ],
)
def test_a_flag_is_known_however_it_was_typed(attribute: str, typed: str) -> None:
    case = case_of(LOG, command=f"server {typed} 4 --other 1")
    from watchd.model import Launch

    assert guard.given(attribute, case.get(Launch)) == typed


def test_an_attribute_is_written_as_the_launch_writes_its_own() -> None:
    from watchd.model import Launch

    case = case_of(LOG, command="serve --max_batch_size 64 --max_input_len 8192")
    assert guard.flag_of("max_queued_tokens", case.get(Launch)) == "--max_queued_tokens"
    assert guard.flag_of("speculative_num_steps") == "--speculative-num-steps"
