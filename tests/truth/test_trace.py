"""The reader of the runtime's trace, on small captured samples."""

from __future__ import annotations

import pytest

from .corpus import PROGRAMS
from .trace import Amount, KindTotals, TraceError, Truth, read_trace, split_arguments

DESCRIPTION = (
    ".pUSMDesc = 0x7ffc2d6ff100 ((struct ur_usm_desc_t){.stype = UR_STRUCTURE_TYPE_CONTEXT_PROPERTIES, "
    ".pNext = nullptr, .hints = 0, .align = 0}), .pool = nullptr"
)


def begin(name: str) -> str:
    return f"   ---> {name}\n"


def end(name: str, arguments: str, result: str = "UR_RESULT_SUCCESS") -> str:
    return f"   <--- {name}({arguments}) -> {result};\n"


def alloc_end(kind: str, size: int, address: int | None) -> str:
    target = "nullptr" if address is None else f"{address:#x}"
    device = "" if kind == "Host" else ".hDevice = 0x55d0, "
    result = "UR_RESULT_SUCCESS" if address else "UR_RESULT_ERROR_INVALID_USM_SIZE"
    text = f".hContext = 0x55c0, {device}{DESCRIPTION}, .size = {size}, .ppMem = 0x7ffc2d6ff120 ({target})"
    return end(f"urUSM{kind}Alloc", text, result)


def alloc(kind: str, size: int, address: int | None) -> str:
    return begin(f"urUSM{kind}Alloc") + alloc_end(kind, size, address)


def free_end(address: int) -> str:
    return end("urUSMFree", f".hContext = 0x55c0, .pMem = {address:#x}")


def free(address: int) -> str:
    return begin("urUSMFree") + free_end(address)


def memcpy(target: int, source: int, size: int) -> str:
    return begin("urEnqueueUSMMemcpy") + end(
        "urEnqueueUSMMemcpy",
        f".hQueue = 0x55e0, .blocking = 0, .pDst = {target:#x}, .pSrc = {source:#x}, .size = {size}, "
        ".numEventsInWaitList = 0, .phEventWaitList = nullptr, .phEvent = 0x7ffc2d6f1358 (0x562c27d27450)",
    )


def buffer(flags: str, size: int) -> str:
    return begin("urMemBufferCreate") + end(
        "urMemBufferCreate",
        f".hContext = 0x55c0, .flags = {flags}, .size = {size}, .pProperties = 0x7ffda73e1f50 ((struct "
        "ur_buffer_properties_t){.stype = UR_STRUCTURE_TYPE_BUFFER_PROPERTIES, .pNext = nullptr, "
        ".pHost = 0x55e0040f5fa0}), .phBuffer = 0x7ffda73e1f68 (0x55e003ec50e0)",
    )


def read(*parts: str, marks: bool = False) -> Truth:
    return read_trace("".join(parts).splitlines(keepends=True), marks=marks)


CAPTURED = """\
   ---> urUSMHostAlloc
   <--- urUSMHostAlloc(.hContext = 0x5587bdc5e4b0, .pUSMDesc = 0x7fffc60c0810 ((struct \
ur_usm_desc_t){.stype = UR_STRUCTURE_TYPE_CONTEXT_PROPERTIES, .pNext = nullptr, .hints = 0, .align = \
8}), .pool = nullptr, .size = 24, .ppMem = 0x7fffc60c0828 (0x5587bdc75790)) -> UR_RESULT_SUCCESS;
   ---> urUSMDeviceAlloc
   <--- urUSMDeviceAlloc(.hContext = 0x5587bdc5e4b0, .hDevice = 0x5587bdb78a60, .pUSMDesc = \
0x7fffc60c07f0 ((struct ur_usm_desc_t){.stype = UR_STRUCTURE_TYPE_CONTEXT_PROPERTIES, .pNext = nullptr, \
.hints = 0, .align = 8}), .pool = nullptr, .size = 24, .ppMem = 0x7fffc60c0808 (0x5587bdc75da0)) -> \
UR_RESULT_SUCCESS;
   ---> urEnqueueUSMMemcpy
   <--- urEnqueueUSMMemcpy(.hQueue = 0x5587bdc5e8e0, .blocking = 0, .pDst = 0x5587bdc75da0, .pSrc = \
0x5587bdc75790, .size = 24, .numEventsInWaitList = 0, .phEventWaitList = nullptr, .phEvent = \
0x7fffc60c0838 (0x5587bdc76200)) -> UR_RESULT_SUCCESS;
   ---> urMemBufferCreate
   ---> urUSMFree
   <--- urUSMFree(.hContext = 0x5587bdc5e4b0, .pMem = 0x5587bdc75790) -> UR_RESULT_SUCCESS;
   <--- urMemBufferCreate(.hContext = 0x5587bdc5e4b0, .flags = UR_MEM_FLAG_READ_ONLY | \
UR_MEM_FLAG_USE_HOST_POINTER, .size = 159992, .pProperties = 0x7fffc60bed30 ((struct \
ur_buffer_properties_t){.stype = UR_STRUCTURE_TYPE_BUFFER_PROPERTIES, .pNext = nullptr, .pHost = \
0x5587bdce3bf0}), .phBuffer = 0x7fffc60bed48 (0x5587bdc76590)) -> UR_RESULT_SUCCESS;
   ---> urEnqueueMemBufferRead
   <--- urEnqueueMemBufferRead(.hQueue = 0x55f1b4ae4e00, .hBuffer = 0x5587bdc76590, .blockingRead = 0, \
.offset = 0, .size = 2400, .pDst = 0x55f1b80fb280, .numEventsInWaitList = 2, .phEventWaitList = \
0x55f1b89a6340 {0x55f1b86c1c20, 0x55f1b86c1c20}, .phEvent = 0x7ffc63ea19a8 (0x55f1b8933bc0)) -> \
UR_RESULT_SUCCESS;
2.0
   ---> urMemRelease
   <--- urMemRelease(.hMem = 0x5587bdc76590) -> UR_RESULT_SUCCESS;
"""


def test_captured_lines() -> None:
    truth = read(CAPTURED)
    one = dict(alloc_count=1, allocated_bytes=24, peak_bytes=24, peak_count=1)
    assert truth.kinds["host"] == KindTotals(**one, free_count=1, freed_bytes=24)
    assert truth.kinds["device"] == KindTotals(**one, current_bytes=24, current_count=1)
    assert truth.kinds["shared"] == KindTotals()
    assert truth.peak_bytes == 48
    assert truth.memcpy == Amount(1, 24)
    assert truth.buffer_creates == Amount(1, 159_992)
    assert truth.buffer_reads == Amount(1, 2400)
    assert truth.transfers == {"host_to_device": Amount(2, 160_016), "device_to_host": Amount(1, 2400)}
    assert truth.output == "2.0\n"
    assert truth.open_calls == {}


def test_peaks_of_kinds_and_of_the_sum() -> None:
    a, b, c = 0x1000, 0x9000, 0xF000
    truth = read(alloc("Device", 100, a), free(a), alloc("Host", 70, b), alloc("Shared", 20, c), alloc("Device", 5, a))
    assert [truth.kinds[k].peak_bytes for k in ("device", "host", "shared")] == [100, 70, 20]
    assert truth.peak_bytes == 100
    assert sum(row.current_bytes for row in truth.kinds.values()) == 95


def test_failures() -> None:
    truth = read(alloc("Device", 1 << 40, None), alloc("Host", 1 << 40, None), alloc("Device", 8, 0x1000))
    assert truth.kinds["device"] == KindTotals(1, 8, 0, 0, 1, 8, 1, 8, 1)
    assert truth.kinds["host"] == KindTotals(failed_count=1)


def test_directions() -> None:
    device, shared, host, plain = 0x1000, 0x2000, 0x3000, 0x4000
    truth = read(
        alloc("Device", 64, device),
        alloc("Shared", 64, shared),
        alloc("Host", 64, host),
        memcpy(device + 32, plain, 1),
        memcpy(shared, host + 8, 2),
        memcpy(host + 56, device + 60, 4),
        memcpy(plain, shared + 1, 8),
        memcpy(device, shared, 16),
        memcpy(plain, host, 32),
        memcpy(device + 64, shared, 64),
    )
    assert truth.transfers == {
        "host_to_device": Amount(2, 3),
        "device_to_host": Amount(3, 76),
        "device_to_device": Amount(1, 16),
    }
    assert truth.memcpy == Amount(7, 127)


def test_buffers_count_when_they_take_content_from_the_host() -> None:
    truth = read(
        buffer("UR_MEM_FLAG_READ_ONLY | UR_MEM_FLAG_USE_HOST_POINTER", 100),
        buffer("UR_MEM_FLAG_READ_WRITE | UR_MEM_FLAG_ALLOC_COPY_HOST_POINTER", 10),
        buffer("UR_MEM_FLAG_READ_WRITE", 1),
    )
    assert truth.buffer_creates == Amount(2, 110)
    assert truth.transfers == {"host_to_device": Amount(2, 110)}


def test_regions_and_pitches() -> None:
    truth = read(
        begin("urEnqueueMemBufferWriteRect"),
        end(
            "urEnqueueMemBufferWriteRect",
            ".hQueue = 0x1, .hBuffer = 0x2, .bufferOrigin = (struct ur_rect_offset_t){.x = 0, "
            ".y = 0, .z = 0}, .region = (struct ur_rect_region_t){.width = 8, .height = 3, .depth = 2}, "
            ".pSrc = 0x3",
        ),
        alloc("Device", 1000, 0x1000),
        begin("urEnqueueUSMMemcpy2D"),
        end(
            "urEnqueueUSMMemcpy2D",
            ".hQueue = 0x1, .blocking = 0, .pDst = 0x1000, .dstPitch = 100, .pSrc = 0x9000, .srcPitch = 64, "
            ".width = 50, .height = 10, .numEventsInWaitList = 0",
        ),
    )
    assert truth.buffer_writes == Amount(1, 48)
    assert truth.memcpy == Amount(1, 500)
    assert truth.transfers == {"host_to_device": Amount(2, 548)}


def test_lines_of_threads_interleave() -> None:
    truth = read(
        alloc("Device", 64, 0x1000),
        begin("urUSMDeviceAlloc"),
        begin("urUSMHostAlloc"),
        alloc_end("Device", 32, 0x2000),
        begin("urUSMFree"),
        alloc_end("Host", 16, 0x3000),
        free_end(0x1000),
    )
    assert truth.kinds["device"] == KindTotals(2, 96, 1, 64, 0, 32, 1, 96, 2)
    assert truth.kinds["host"] == KindTotals(1, 16, 0, 0, 0, 16, 1, 16, 1)
    assert truth.overlaps == 1
    assert truth.settled_frees == 0


def test_reuse_is_printed_before_the_free_that_made_it_possible() -> None:
    truth = read(
        alloc("Device", 64, 0x1000),
        begin("urUSMFree"),
        alloc("Host", 16, 0x1020),
        memcpy(0x1020, 0x9000, 4),
        free_end(0x1000),
        free(0x1020),
    )
    assert truth.kinds["device"] == KindTotals(1, 64, 1, 64, 0, 0, 0, 64, 1)
    assert truth.kinds["host"] == KindTotals(1, 16, 1, 16, 0, 0, 0, 16, 1)
    assert truth.peak_bytes == 64
    assert truth.settled_frees == 1
    assert truth.transfers == {}


def test_marks_cut_the_trace() -> None:
    truth = read(
        alloc("Shared", 7, 0x1000) + memcpy(0x1000, 0x9000, 7) + free(0x1000),
        "hello <<< dpmem begin >>>\n",
        alloc("Device", 64, 0x1000),
        begin("urUSMFree"),
        "<<< dpmem report >>>\n",
        free_end(0x1000),
        "bye\n",
        marks=True,
    )
    assert truth.kinds["device"] == KindTotals(1, 64, 0, 0, 0, 64, 1, 64, 1)
    assert truth.kinds["shared"] == KindTotals()
    assert truth.transfers == {}
    assert truth.open_calls == {"urUSMFree": 1}
    assert truth.output == "hello bye\n"


def test_output_on_the_line_of_a_call_is_the_programs() -> None:
    assert read("1", begin("urUSMFree").rstrip("\n"), "\n\nend", marks=False).output == "1\nend"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (free(0x1000), "never allocated"),
        (alloc("Device", 8, 0x1000) + free(0x1000) + free(0x1000), "never allocated"),
        (alloc("Device", 8, 0x1000) + alloc("Host", 8, 0x1004), "still in use"),
        (free_end(0x1000), "more often than it begins"),
        (begin("urUSMFree") + "   <--- urUSMFree(.hContext = 0x55c0, .pMe\n", "cannot read the ending"),
        (begin("urUSMFree") + end("urUSMFree", ".hContext = 0x55c0"), "`pMem` is missing"),
        (begin("urUSMFree") + end("urUSMFree", ".hContext = 0x55c0, .pMem = some"), "is no pointer"),
        (begin("urUSMFree") + end("urUSMFree", ".pMem = 0x1000", "UR_RESULT_ERROR_UNKNOWN"), "a free failed"),
        (begin("urUSMPoolCreate") + end("urUSMPoolCreate", ".hContext = 0x1"), "not modelled"),
        (
            begin("urEnqueueUSMDeviceAllocExp") + end("urEnqueueUSMDeviceAllocExp", ".size = 1"),
            "not modelled",
        ),
        (alloc("Device", 8, 0x1000) + memcpy(0x1004, 0x9000, 8), "over the end"),
        ("---> urUSMFree\n", "looks like a part of the trace"),
        (".pMem = 0x1000) -> UR_RESULT_SUCCESS;\n", "looks like a part of the trace"),
        ("<<< dpmem begin >>>\n", "not asked for"),
    ],
)
def test_nothing_is_guessed(text: str, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        read(text)


@pytest.mark.parametrize("text", ["", "<<< dpmem begin >>>\n", "<<< dpmem report >>>\n<<< dpmem begin >>>\n"])
def test_marks_must_be_there_once_and_in_order(text: str) -> None:
    with pytest.raises(TraceError, match="expected one begin mark"):
        read(text, marks=True)


def test_blocks_before_the_begin_mark_must_be_gone() -> None:
    with pytest.raises(TraceError, match="expected none"):
        read(alloc("Device", 8, 0x1000), "<<< dpmem begin >>>\n", "<<< dpmem report >>>\n", marks=True)


def test_arguments_are_split_at_their_own_level() -> None:
    assert split_arguments(".a = 1, .b = 0x1 ((struct s){.c = 2, .d = 3}), .e = 0x2 {0x3, 0x4}") == {
        "a": "1",
        "b": "0x1 ((struct s){.c = 2, .d = 3})",
        "e": "0x2 {0x3, 0x4}",
    }


def test_the_corpus_is_what_it_claims_to_be() -> None:
    import sys

    assert len(PROGRAMS) >= 28
    assert sum(program.waits for program in PROGRAMS) >= 10
    # a program's folder comes first on its own import path
    assert not {program.name for program in PROGRAMS} & sys.stdlib_module_names
