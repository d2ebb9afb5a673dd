import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from normball.report.text import clean, script_json, short


@settings(max_examples=50)
@given(st.lists(st.text() | st.integers() | st.none()) | st.dictionaries(st.text(), st.text()))
def test_json_in_a_script_is_harmless_and_the_same(data):
    text = script_json(data)
    assert text.isascii()
    assert not set("<>&") & set(text)
    assert json.loads(text) == data


@given(st.text(st.characters(exclude_categories=())))
def test_clean_text_can_be_written_anywhere(text):
    kept = clean(text)
    kept.encode("utf-8")
    assert len(kept) == len(text)
    assert all(c == " " or not c.isspace() or ord(c) > 127 for c in kept)
    assert clean(kept) == kept


@given(st.text(max_size=60), st.integers(2, 50))
def test_short_text_is_short_and_never_nothing(text, limit):
    kept = short(text, limit)
    assert kept.strip()
    inner = kept.strip("\u2068\u2069") if kept[0] == "\u2068" and kept[-1] == "\u2069" else kept
    assert len(inner) <= limit or kept == "(no name)"


@pytest.mark.parametrize("turning", ["שלום", "\u202egnp.exe", "\u2067x", "a\u2069b"])
def test_text_that_turns_is_closed_in_itself(turning):
    assert short(turning) == f"\u2068{turning}\u2069"
    assert short("plain") == "plain"
