"""`dpmem.where`: device, queue, kind and how much of a larger block an array keeps alive."""

import dpctl
import dpctl.memory
import dpnp
import pytest

import dpmem


def test_an_array_and_its_parts():
    x = dpnp.zeros((512, 512))
    placed = dpmem.where(x)
    assert (placed.usm_kind, placed.view_bytes, placed.block_bytes) == ("device", 2 << 20, 2 << 20)
    assert (placed.device, placed.is_default_device, placed.notes) == ("opencl:cpu:0", True, [])
    row = dpmem.where(x[3, :4])
    assert (row.view_bytes, row.block_bytes, row.queue) == (32, 2 << 20, placed.queue)
    assert any("alive" in note for note in row.notes)
    assert "\n" not in str(row)
    assert "32 B of a block of 2 MiB" in str(row)
    assert "<code>" in row._repr_html_()


def test_queues_have_names_that_tell_them_apart():
    one, other = dpctl.SyclQueue(), dpctl.SyclQueue(property="in_order")
    a, b, c = (dpnp.zeros(3, sycl_queue=queue) for queue in (one, other, one))
    names = [dpmem.where(array).queue for array in (a, b, c)]
    assert names[0] == names[2] != names[1]
    assert names[1].endswith("(in order)")


@pytest.mark.parametrize("kind", ["device", "host", "shared"])
def test_memory_objects_and_arrays_over_them(kind):
    memory = getattr(dpctl.memory, f"MemoryUSM{kind.capitalize()}")(4096)
    placed = dpmem.where(memory)
    assert (placed.usm_kind, placed.view_bytes, placed.block_bytes) == (kind, 4096, 4096)
    x = dpnp.zeros(8, usm_type=kind)
    assert dpmem.where(x).usm_kind == dpmem.where(x.get_array()).usm_kind == kind


def test_whatever_shows_usm():
    class Theirs:
        def __init__(self, memory):
            self.memory = memory

        @property
        def __sycl_usm_array_interface__(self):
            return self.memory.__sycl_usm_array_interface__

    placed = dpmem.where(Theirs(dpctl.memory.MemoryUSMShared(64)))
    assert (placed.usm_kind, placed.block_bytes) == ("shared", 64)


def test_what_is_no_array_is_refused():
    for wrong in (3, [1.0], "x", None):
        with pytest.raises(TypeError, match="expected a dpnp array"):
            dpmem.where(wrong)
