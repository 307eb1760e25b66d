"""Notebooks that run in a real kernel of this interpreter, with no settings but the tests'."""

import re

import pytest


class Cell:
    """A cell that has run: what it printed, showed and raised."""

    def __init__(self, cell):
        self.number = cell.execution_count
        self.outputs = cell.outputs

    def stream(self, name="stdout"):
        return "".join(output.text for output in self.outputs if output.get("name") == name)

    def shown(self, kind="text/plain", of=("display_data", "execute_result")):
        return "\n".join(output.data.get(kind, "") for output in self.outputs if output.output_type in of)

    @property
    def page(self):
        """The text that a magic shows, with single spaces."""
        return re.sub(r"\s+", " ", self.shown(of=("display_data",)))

    @property
    def error(self):
        return next((output for output in self.outputs if output.output_type == "error"), None)


@pytest.fixture
def quiet_jupyter(tmp_path, monkeypatch):
    """Kernels that start now have none of the user's settings."""
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")


@pytest.fixture
def run_cells(tmp_path, quiet_jupyter):
    """Runs cells in a kernel of their own; the first one is there already: it imports dpnp."""
    import nbformat
    from nbclient import NotebookClient

    def run(*texts):
        texts = ["import dpnp", *texts]
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in texts])
        client = NotebookClient(
            notebook, timeout=120, allow_errors=True, resources={"metadata": {"path": str(tmp_path)}}
        )
        client.execute()
        cells = [Cell(cell) for cell in notebook.cells]
        assert cells[0].error is None, cells[0].error
        return cells

    return run
