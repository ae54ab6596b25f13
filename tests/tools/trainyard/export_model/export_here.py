"""`trainyard export`, and its Python part in this process, because torch is slow to import."""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TRAINYARD = sys.argv.pop(1)
SOURCES = HERE.parents[3] / "tools/trainyard/export_model"


def python_part():
    """The package that the program embeds."""
    package = importlib.util.module_from_spec(importlib.machinery.ModuleSpec("trainyard_export", None, is_package=True))
    package.__path__ = [str(SOURCES)]
    sys.modules["trainyard_export"] = package
    from trainyard_export import program
    return program


def export(function, out, *more, python=sys.executable):
    command = [TRAINYARD, "export", function, "-o", str(out), "--python", python, *more]
    return subprocess.run(command, capture_output=True, text=True, timeout=250)


def given_by_the_program():
    """What `trainyard export` gives to its Python part: operators, rows of tasks, sources."""
    with tempfile.TemporaryDirectory() as folder:
        python, copy = pathlib.Path(folder) / "python", pathlib.Path(folder) / "given.json"
        python.write_text(f"#!{sys.executable}\nimport os, pathlib, sys\n"
                          f"pathlib.Path({str(copy)!r}).write_bytes(os.fdopen(int(sys.argv[3]), 'rb').read())\n")
        python.chmod(0o700)
        export(f"{HERE}/networks.py:mlp", pathlib.Path(folder) / "net.pt2", python=python)
        return json.loads(copy.read_text())


PYTHON_PART = python_part()
GIVEN = given_by_the_program()


def export_here(function, out, *more):
    """As `export`, in this process."""
    said, warned = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(warned):
        code = PYTHON_PART.main([f"--out={out}", *more, "--", function], GIVEN["operators"], GIVEN["tasks"])
    return subprocess.CompletedProcess([], code, said.getvalue(), warned.getvalue())
