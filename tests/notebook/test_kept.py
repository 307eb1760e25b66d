"""What a notebook keeps: `%dpmem` names it, and `%dpmem clear` lets go of it."""

import re

MIB = 1 << 20

#: Three arrays of 64 MiB are shown; one loses its variable, two never had one; a function fails with a fourth.
KEEPING = (
    "a = dpnp.ones(16 << 20, dtype='f4')\na",
    "dpnp.full(16 << 20, 2, dtype='f4')",
    "dpnp.zeros(16 << 20, dtype='f4')",
    "del a",
    "def fails():\n    lost = dpnp.ones(16 << 20, dtype='f4')\n    raise ValueError('no')",
    "fails()",
)
#: Counts without dpmem.
COUNT = (
    "import gc, dpctl.memory\n"
    "print(sum(m.nbytes for m in gc.get_objects() if isinstance(m, dpctl.memory.MemoryUSMDevice)))"
)


def blocks(page):
    """The blocks of 64 MiB of a page: the holders of each, and where it was made."""
    table = page[page.index("By variable") : page.index("By cell")]
    found = []
    for entry in re.split(r"(?<= )64 MiB ", table)[1:]:
        head, _, rest = re.split(r" \d+ B ", entry)[0].partition(" also ")
        found.append((head.strip(), rest))
    return found


def test_every_holder_and_every_cell_is_named_and_clear_frees_all(run_cells):
    cells = run_cells("%load_ext dpmem\n%dpmem on", *KEEPING, "%dpmem", "%dpmem clear", COUNT)
    assert cells[7].error.ename == "ValueError"
    page = cells[8].page
    assert page.startswith("In use: 256 MiB in ")
    assert "at most 256 MiB since recording began in In[2]" in page
    text = {name: f"{head} also {rest}" for head, rest in blocks(page) for name in re.findall(r"Out\[\d\]|lost", head)}
    for number, under in ((3, "___"), (4, "__"), (5, "_")):
        names = set(re.split(r", ?| also | ", text[f"Out[{number}]"]))
        wanted = {f"_{number}", under, f"displayhook.{under}", f"user_ns_hidden['{under}']"}
        assert wanted | {f"user_ns_hidden['_{number}']"} <= names, (wanted - names, page)
        assert f"cell In[{number}], line 1" in text[f"Out[{number}]"]
    assert "the last traceback → fails(): lost" in text["lost"]
    assert "cell In[7], line 2 in fails" in text["lost"]
    assert "192 MiB" not in page
    assert re.search(r"64 MiB cell In\[8\] .* from cell In\[7\], line 2 in fails", page)
    assert page.count("DPM206 held-by-notebook") == 4, page
    assert "DPM203" not in page
    cleared = cells[9].page
    assert "Let go of 3 shown results and the last traceback: 256 MiB came back" in cleared, cleared
    assert int(cells[10].stream()) < MIB


def test_late_and_after_a_reset_it_names_and_frees_what_python_holds(run_cells):
    cells = run_cells(*KEEPING, "%reset -f out", "%load_ext dpmem\n%dpmem", "%dpmem clear", COUNT, "%dpmem clear")
    page = cells[8].page
    held = dict(blocks(page))
    assert len(held) == 4, page
    for under in ("_", "__", "___"):
        assert f"user_ns_hidden['{under}'] before recording began" in held, page
    assert "the last traceback → fails(): lost before recording began" in held
    assert "cell In[" not in page
    assert "What was there before recording began has no line and no cell" in page
    assert "3 shown results and the last traceback: 256 MiB came back" in cells[9].page
    assert int(cells[10].stream()) < MIB
    assert "Let go of nothing: no result was kept, and no traceback: 0 B came back" in cells[11].page


def test_clear_leaves_what_is_the_users(run_cells):
    cells = run_cells(
        "%load_ext dpmem\n_ = kept = dpnp.ones(1 << 20, dtype='f4')",
        "_7 = kept",
        "shown = dpnp.ones(2 << 20, dtype='f4')\nshown",
        "get_ipython().InteractiveTB.pdb = [dpnp.ones(1 << 20, dtype='f4')]\n"
        "error = None\ntry:\n    1 / 0\nexcept ZeroDivisionError as caught:\n    error = caught",
        "%dpmem clear",
        "print(_ is kept, _7 is kept, shown.size, error.__traceback__ is not None, Out, _i2[:9])",
        "5",
        "print(_7 is kept, Out[8])",
    )
    assert cells[6].stream() == "True True 2097152 True {} %load_ext\n", cells[6].outputs
    assert "Still in use" in cells[5].page
    assert "8 MiB shown" in cells[5].page
    assert "4 MiB kept" in cells[5].page
    assert "12 MiB in use" in cells[5].page, "what the debugger kept is gone"
    assert cells[8].stream() == "True 5\n", cells[8].outputs


def test_results_that_have_left_a_full_cache_are_let_go_of(run_cells):
    cells = run_cells(
        "get_ipython().displayhook.cache_size = 3\nimport warnings\nwarnings.simplefilter('ignore')",
        *("dpnp.ones(1 << 20, dtype='f4')" for _ in range(5)),
        "%load_ext dpmem\n%dpmem clear",
        COUNT,
    )
    assert int(cells[-1].stream()) < MIB, cells[-2].page


def test_out_of_memory_names_cells(run_cells):
    cells = run_cells(
        "import dpmem\nsmall = dpnp.ones(10)\ndpmem.set_memory_limit('64MiB')",
        "def more():\n    return dpnp.ones(12 << 20, dtype='f4')\nfirst = more()",
        "more()",
        "print(dpmem.live()[0].site)\nprint(dpmem.last_out_of_memory())",
        "from dpmem import _shortage_text\nprint('cell In[6]' in _shortage_text._own_files())",
    )
    assert cells[3].error.ename == "OutOfDeviceMemory"
    assert cells[4].stream().startswith("cell In[3], line 2 in more\n")
    assert "at cell In[3], line 2 in more" in cells[3].error.evalue
    assert cells[5].stream() == "True\n", "what holders call the file, too"
