"""The command ``dpmem``: reads its arguments and hands over."""

# What is imported here and in the modules that `dpmem run` uses is in `sys.modules` before the program
# starts, so that a program's own `json.py` or `queue.py` would no longer be found. Hence only modules that
# every interpreter has loaded by now, and built-in ones.
import sys

from dpmem import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main() -> object:
    """Run the command line in ``sys.argv``; the result is for ``sys.exit``."""
    answer = _native.cli_parse(sys.argv[1:])
    if answer["command"] == "exit":
        _native.process_write(1, answer["stdout"])
        _native.process_write(2, answer["stderr"])
        code: int = answer["code"]
        return code

    if answer["command"] == "lint":
        return _native.cli_lint(answer["arguments"])

    if answer["command"] in ("devices", "doctor", "watch", "plan"):
        try:
            return _machine(answer)
        except KeyboardInterrupt:
            return 130  # as of a program that SIGINT has ended

    from dpmem import _command

    run = _command.begin(answer)
    if isinstance(run, int):
        return run
    # Called from here so that as few frames as can be lie under the program's.
    return run.ended(run.program.function(*run.program.arguments))


def _machine(answer: "dict[str, Any]") -> int:
    # These run no program, so they may load what they like.
    if answer["command"] == "devices":
        from dpmem import _devices_command

        return _devices_command.run(as_json=answer["json"], kernels=answer["probe"])
    if answer["command"] == "doctor":
        from dpmem import _doctor_command

        return _doctor_command.run(
            as_json=answer["json"], only=answer["only"], skip=answer["skip"], bundle=answer["bundle"]
        )
    if answer["command"] == "plan":
        from dpmem import _plan_command

        return _plan_command.run(
            module=answer["module"],
            function=answer["function"],
            source=answer["source"],
            budget=answer["budget"],
            device=answer["device"],
            as_json=answer["json"],
        )
    from dpmem import _watch

    return _watch.run(
        interval_s=answer["interval_ms"] / 1000, count=answer["count"], form=answer["format"], pid=answer["pid"]
    )


if __name__ == "__main__":
    raise SystemExit(main())
