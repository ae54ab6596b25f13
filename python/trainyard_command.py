"""The command `trainyard` of a wheel. It is not in the package, whose import loads PyTorch."""
import os
import pathlib
import sys


def main():
    program = pathlib.Path(__file__).parent / "trainyard/bin/trainyard"
    os.environ["TRAINYARD_PYTHON"] = sys.executable  # for `trainyard export FILE.py:FUNCTION`
    os.execv(program, [str(program), *sys.argv[1:]])
