import json

from hypothesis import given
from hypothesis import strategies as st

from normball.report.text import clean, script_json, short


@given(st.recursive(st.text() | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
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
    assert len(kept) <= limit or kept == "(no name)"
    assert kept.startswith(clean(text)[: limit - 1].rstrip()) or kept == "(no name)"
