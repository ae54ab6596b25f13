"""Follow a section of ARCHITECTURE.md in a copy of the tree, for tools/check-new-model and tools/check-new-task.

A block of code in the section is a new file. Its path is the last one in backticks before the block. Each row of the table
"in | in place of | write" is a replacement, and the old text must occur exactly once. The copy stays in build/, so that the
next call builds only changes."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
COPY = ROOT / "build" / "new-model"  # one copy: what is added first stays the same, and is not built again


def fail(text):
    sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {text}")


def section(title):
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", (ROOT / "ARCHITECTURE.md").read_text(), re.S | re.M)
    return found.group(1) if found else fail(f'ARCHITECTURE.md has no section "{title}"')


def new_files(text):
    """{path: content} from the blocks of code."""
    files = {}
    for block in re.finditer(r"^```\w+\n(.*?)^```$", text, re.S | re.M):
        paths = re.findall(r"`([\w/.]+\.\w+)`", text[:block.start()])
        if not paths or paths[-1] in files:
            fail("no path is named before this block of code, or the path is used twice:\n" + block.group(1))
        files[paths[-1]] = block.group(1)
    return files


def replacements(text):
    """[(path, old, new)] from the rows of the table."""
    rows = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \| `([^`]+)` \|$", text, re.M)
    return [(path, old, new.replace("⏎", "\n")) for path, old, new in rows]


def tree():
    """{path: bytes} of the checkout, without ignored files."""
    listed = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    return {path: (ROOT / path).read_bytes() for path in listed if path and (ROOT / path).is_file()}


def with_section(files, title):
    """The files with what the section adds and changes."""
    added, changed = new_files(section(title)), replacements(section(title))
    if not changed:
        fail(f'the section "{title}" changes no line')
    for path, content in added.items():
        if path in files:
            fail(f"{path} already exists")
        files[path] = content.encode()
    for path, old, new in changed:
        if path not in files:
            fail(f"{path}, in which the page replaces a line, does not exist")
        content = files[path].decode()
        if content.count(old) != 1:
            fail(f"{path} must have this text once, but has it {content.count(old)} times: {old}")
        files[path] = content.replace(old, new).encode()
    return files


def write(files):
    """Write the copy. Unchanged files keep their times, so that they are not built again."""
    for path, content in files.items():
        to = COPY / path
        if to.is_file() and to.read_bytes() == content:
            continue
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(content)
        shutil.copymode(ROOT / path, to) if (ROOT / path).exists() else None
    for folder, folders, names in os.walk(COPY):
        if pathlib.Path(folder) == COPY:
            folders.remove("build") if "build" in folders else None
        for name in names:
            if str((pathlib.Path(folder) / name).relative_to(COPY)) not in files:
                (pathlib.Path(folder) / name).unlink()


def python_with_torch():
    """The Python of build/python, by a path inside the copy, so that ccache finds the headers of the environment."""
    python = pathlib.Path((ROOT / "build" / "python").read_text().strip())
    (COPY / "build").mkdir(parents=True, exist_ok=True)
    venv = ROOT / "build" / "venv"
    if not python.is_relative_to(venv):
        return python
    if not (COPY / "build" / "venv").exists():
        (COPY / "build" / "venv").symlink_to(venv)
    return COPY / "build" / "venv" / python.relative_to(venv)


def run(*command):
    print("+", *command, flush=True)
    result = subprocess.run([str(part) for part in command], cwd=COPY, stdin=subprocess.DEVNULL)
    if result.returncode != 0:
        fail(f"the documented way does not work: the command above failed in {COPY.relative_to(ROOT)}")


def build(targets):
    if not (ROOT / "build" / "python").exists():
        fail("build first: tools/build")
    run("cmake", "--preset", "release", "--no-warn-unused-cli", f"-DLibTorch_PYTHON={python_with_torch()}", "--log-level=WARNING")
    run("cmake", "--build", "build/release", "--parallel", os.cpu_count(), "--target", *targets)
