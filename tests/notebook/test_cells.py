"""Which cell a file of code is, from what a shell remembers and from what was watched."""

from types import SimpleNamespace

import pytest

from dpmem import _cells


@pytest.fixture
def history(monkeypatch):
    """The history of a shell that names a cell's file by its text, as a kernel does."""
    kept = SimpleNamespace(input_hist_raw=[""], input_hist_parsed=[""], session_number=1)
    compiler = SimpleNamespace(
        get_code_name=lambda text, transformed, number: f"/cells/{text}.py",
        format_code_name=lambda name: ("Cell", "In[9]") if name.startswith("/cells/") else None,
    )
    monkeypatch.setattr(_cells, "shell", lambda: SimpleNamespace(history_manager=kept, compile=compiler))
    for name in ("runs", "_named", "_numbers", "_numbers_of"):
        monkeypatch.setattr(_cells, name, type(getattr(_cells, name))())

    def ran(*texts):
        for text in texts:
            kept.input_hist_raw.append(text)
            kept.input_hist_parsed.append(text)
        return kept

    return ran


def test_every_run_of_a_text_is_known_as_soon_as_it_begins(history):
    history("a", "b", "a")
    assert _cells.numbers("/cells/a.py") == [1, 3]
    assert _cells.title("/cells/a.py") == "cell In[1] or In[3]"
    history("a")
    assert _cells.newest("/cells/a.py") == 4
    assert _cells.title("/cells/a.py") == "cell In[1] … In[4]"
    assert _cells.titles() == {"/cells/a.py": "cell In[1] … In[4]", "/cells/b.py": "cell In[2]"}
    assert _cells.title("/cells/unknown.py") == "cell In[9]", "what IPython itself says"
    assert (_cells.title("/home/a.py"), _cells.numbers("/home/a.py")) == (None, [])


def test_runs_that_were_watched_are_told_apart_by_time(history):
    history("a", "a")
    _cells.runs.extend([(2, "/cells/a.py", 100), (3, "/cells/b.py", 200)])
    _cells.runs.append((4, "/cells/a.py", 300))
    assert [_cells.number_at("/cells/a.py", ticks) for ticks in (99, 100, 200, 300, None)] == [None, 2, None, 4, None]
    assert _cells.number_at("/cells/b.py", 5) == 3


def test_a_history_that_was_emptied_keeps_its_numbers_and_one_begun_anew_does_not(history):
    kept = history("a", "b")
    assert _cells.numbers("/cells/a.py") == [1]
    kept.input_hist_raw[:] = kept.input_hist_parsed[:] = [""] * 3
    history("c")
    assert [_cells.numbers(f"/cells/{name}.py") for name in "abc"] == [[1], [2], [3]]
    kept.input_hist_raw[1:], kept.input_hist_parsed[1:], kept.session_number = ["b"], ["b"], 2
    assert _cells.numbers("/cells/b.py") == [1]
    assert _cells.numbers("/cells/a.py") == [9], "what IPython itself says"
