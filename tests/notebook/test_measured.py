"""`%%dpmem`: what a cell did; and that the cell doesn't notice."""

import re


def test_it_tells_what_the_cell_did_at_its_own_lines(run_cells):
    cells = run_cells(
        "%load_ext dpmem\ndef double(x):\n    return x + x",
        "%%dpmem\n# a comment\nkept = [dpnp.ones(1 << 20, dtype='f4') for _ in range(3)]\n"
        "for i in range(25):\n    d = double(kept[0])\nd",
        "%%dpmem\nfresh = dpnp.ones(1 << 18, dtype='f4')\ndel d",
        "%dpmem",
    )
    page = cells[2].page
    assert re.match(r"cell In\[3\], .*: in use 16 MiB \(\+16 MiB\), peak (20|24) MiB \(\+(20|24) MiB\)", page), page
    left = page[page.index("Left by this cell") : page.index("Allocated, by line")]
    assert re.search(r"12 MiB kept \(3 blocks\) cell In\[3\], line 3", left), left
    assert "holders: kept[0], kept[1], kept[2]" in left
    assert "4 MiB d cell In[2], line 3 in double also Out[3], " in left
    assert re.search(r"100 MiB cell In\[2\], line 3 in double \d+ blocks return x \+ x", page), page
    assert "warning DPM301 alloc-in-loop cell In[2], line 3 allocates" in page
    assert cells[2].shown(of=("execute_result",)).startswith("array(")
    # The next cell has nothing to do with the loop.
    page = cells[3].page
    assert "in use 17 MiB (+1 MiB)" in page
    assert "1 MiB fresh cell In[4], line 2" in page
    assert "DPM" not in page
    by_cell = cells[4].page[cells[4].page.index("By cell") :]
    assert re.search(r"16 MiB cell In\[3\] \d+ blocks from", by_cell), by_cell
    assert "1 MiB cell In[4] 1 block from line 2 (1 MiB)" in by_cell


FAILING = "def inner(x):\n    raise ValueError(x)\n\nx = dpnp.ones(10)\ninner('no')"


def test_exceptions_are_those_of_the_cell_alone(run_cells):
    plain, measured = f"# plain\n{FAILING}", f"%%dpmem\n{FAILING}"
    cells = run_cells("%load_ext dpmem", plain, measured, "import sys; print(type(sys.last_value), len(Out))", "%tb")

    def neutral(cell):
        text = "\n".join(cell.error.traceback)
        text = re.sub(r"\x1b\[[0-9;]*m", "", text).replace(f"In[{cell.number}]", "In[N]")
        return re.sub(r"(# plain|get_ipython\(\).find_line_magic\('dpmem'\)\('cell'\))", "FIRST", text)

    assert neutral(cells[3]) == neutral(cells[2])
    assert "Cell In[N], line 6" in neutral(cells[3])
    assert (cells[3].error.ename, cells[3].error.evalue) == ("ValueError", "no")
    assert cells[4].stream() == "<class 'ValueError'> 0\n"
    assert "cell In[4], " in cells[3].page
    assert "80 B x cell In[4], line 5" in cells[3].page


def test_a_measured_cell_runs_as_any_other(run_cells):
    cells = run_cells(
        "%load_ext dpmem",
        "%%dpmem\nimport asyncio\nawait asyncio.sleep(0)\nawaited = dpnp.ones(1000)\nawaited.size",
        "%%dpmem\ndpnp.ones(1000);",
        "%%dpmem\n\n%%time\ntimed = dpnp.ones(1000)",
        "%%capture out\n%%dpmem\ncaptured = dpnp.ones(1000)",
        "print(out.outputs[0].data['text/plain'])",
        "%%dpmem\n'a docstring'\nfrom __future__ import annotations  # paste\n"
        "def f(x: nothing): pass\nprint(f.__annotations__)",
        "%%dpmem\nget_ipython().run_cell('inner = dpnp.ones(1000)')\nafter = dpnp.ones(2000)",
        "x = dpnp.ones(1000)\n%dpmem cell\ny = dpnp.ones(2000)",
        "%%dpmem\n1 +",
        "print(len(In), Out[3], get_ipython().history_manager.input_hist_raw[3])",
        "get_ipython().run_cell_magic('dpmem', '', 'by_name = dpnp.ones(1000)')",
    )
    assert cells[2].shown(of=("execute_result",)) == "1000"
    assert "7.81 KiB awaited cell In[3], line 4" in cells[2].page
    assert cells[3].shown(of=("execute_result",)) == ""
    assert "Left by this cell nothing" in cells[3].page
    assert "Wall time" in cells[4].stream()
    assert "7.81 KiB timed" in cells[4].page
    assert "7.81 KiB captured" in cells[6].stream().replace("  ", " ")
    assert "cell In[6], line 2" in cells[6].stream()
    assert cells[7].stream() == "{'x': 'nothing'}\n"
    assert cells[7].error is None
    assert re.search(r"7.81 KiB inner .* 15.6 KiB after|15.6 KiB after .* 7.81 KiB inner", cells[8].page), cells[8].page
    assert " y cell In[10], line 3" in cells[9].page
    assert " x cell" not in cells[9].page
    assert cells[10].error.ename == "SyntaxError"
    assert "line 2" in "".join(cells[10].error.traceback)
    assert cells[11].stream().startswith("13 1000 %%dpmem\nimport asyncio"), cells[11].stream()
    assert "by_name" in cells[12].page


def test_cells_of_one_text_are_told_apart(run_cells):
    again = "kept.append(dpnp.ones(1 << 20, dtype='f4'))"
    cells = run_cells(
        "kept = []", again, "%load_ext dpmem\n%dpmem on", again, again, "%dpmem", "import dpmem; dpmem.live()"
    )
    by_cell = cells[6].page[cells[6].page.index("By cell") :]
    for number in (5, 6):
        assert f"4 MiB cell In[{number}] 1 block from line 1 (4 MiB)" in by_cell, by_cell
    assert "before recording began" in by_cell
    shown = cells[7].shown()
    assert "cell In[5], line 1" in shown
    assert "cell In[6], line 1" in shown


def test_texts_that_ran_before_anybody_listened_are_not_guessed(run_cells):
    again = "kept.append(dpnp.ones(1 << 20, dtype='f4'))"
    cells = run_cells("import dpmem; dpmem.start(); kept = []", again, again, "%load_ext dpmem\n%dpmem")
    assert "8 MiB cell In[3] or In[4] 4 blocks" in cells[4].page, cells[4].page


def test_a_wrong_word_is_told_and_the_cell_does_not_run(run_cells):
    wrong = ["%dpmem bogus", "%dpmem clear all", "%%dpmem --bogus\nprint('ran')", "%dpmem cell\n%dpmem cell"]
    cells = run_cells(
        "%load_ext dpmem", *wrong, "%dpmem --help", "%%dpmem --help\nprint('ran')", "%dpmem off\n%dpmem off"
    )
    for cell in cells[2:5]:
        assert "UsageError: expected nothing" in cell.stream("stderr")
        assert cell.stream() == ""
    assert "UsageError: this cell is being measured already" in cells[5].stream("stderr")
    assert cells[6].stream().startswith("%dpmem [--all]")
    assert "ran" in cells[7].stream()
    assert cells[8].stream() == "dpmem is not recording any more.\ndpmem is not recording.\n"


def test_a_cell_that_stops_the_recording_or_can_not_be_recorded_runs(run_cells):
    cells = run_cells(
        "%load_ext dpmem",
        "%%dpmem\nimport dpmem\ndpmem.stop()\nprint('ran')",
        "import dpmem._tracking\nstart = dpmem._tracking.start\n"
        "def refuse():\n    raise RuntimeError('nothing can be observed')\ndpmem._tracking.start = refuse",
        "%%dpmem\nprint('ran')",
        "%dpmem",
        "shown = dpnp.ones(1 << 20, dtype='f4')\nshown",
        "del shown\n%dpmem clear",
        "dpmem._tracking.start = start\nprint(Out)\n%dpmem",
    )
    assert cells[2].stream() == "ran\n"
    assert "recording was stopped or begun anew meanwhile, so nothing is known of it" in cells[2].page
    assert cells[4].stream() == "ran\n"
    assert "This cell is not measured: nothing can be observed" in cells[4].stream("stderr")
    assert "UsageError: dpmem can't record here: nothing can be observed" in cells[5].stream("stderr")
    assert cells[7].stream().startswith("Let go of 1 shown result and the last traceback; ")
    assert cells[7].stream().endswith("how much came back is not known: nothing can be observed\n")
    assert cells[8].stream() == "{}\n"
    assert "4 MiB" not in cells[8].page
