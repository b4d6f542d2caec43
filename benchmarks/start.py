"""How fast the command line starts."""

import subprocess
import sys

from benchmarks._measure import Result, Row, interleaved, milliseconds, ratio

HELP = "import sys; sys.argv = ['bezoar', '--help']; from bezoar.cli import main; main()"


def start() -> Result:
    """``bezoar --help`` over an empty program that imports the command-line library."""

    def run(script: str) -> None:
        command = [sys.executable, "-c", script]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    sides = {"help": lambda: run(HELP), "empty": lambda: run("import typer")}
    seconds = interleaved(sides, rounds=15)
    return Result(
        "start",
        "bezoar --help ÷ a program that only imports typer",
        [
            Row(
                "help ÷ import",
                ratio(seconds, "help", "empty"),
                1.5,
                "",
                f"{milliseconds(seconds['help']):.0f} against "
                f"{milliseconds(seconds['empty']):.0f} ms",
            )
        ],
    )
