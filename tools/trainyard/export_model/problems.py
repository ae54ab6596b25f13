"""Errors of the user, and the lines of the user's code that caused them."""
import pathlib
import sys
import sysconfig
import traceback


class Refused(Exception):
    """What the user must fix. str() is "place: message; advice", without the empty parts."""

    def __init__(self, message, advice="", place=""):
        super().__init__((f"{place}: " if place else "") + message + (f"; {advice}" if advice else ""))


def first_line(error):
    """"ValueError: the width is negative": the type of an exception and the first line of its text."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return type(error).__name__ + (f": {lines[0][:200]}" if lines else "")


def is_of_user(filename):
    """Whether the user wrote this source: neither Python, nor an installed package, nor trainyard."""
    own = pathlib.Path(first_line.__code__.co_filename).parent  # also if there is no such folder
    if filename.startswith("<") or pathlib.Path(filename).parent == own:
        return False
    foreign = [sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")]
    if "torch" in sys.modules:
        foreign.append(str(pathlib.Path(sys.modules["torch"].__file__).parent))
    return not any(pathlib.Path(filename).is_relative_to(folder) for folder in foreign)


def shown(filename):
    """The name relative to the current folder if it is below it."""
    path = pathlib.Path(filename).absolute()
    return str(path.relative_to(pathlib.Path.cwd()) if path.is_relative_to(pathlib.Path.cwd()) else path)


def frames_of(error):
    """The frames of an exception and of its causes as (frame, line), the innermost last."""
    causes, found = [], []
    while error is not None and error not in causes:
        causes.append(error)
        error = error.__cause__ or error.__context__
    for each in reversed(causes[1:]):
        found = list(traceback.walk_tb(each.__traceback__)) or found
    own = list(traceback.walk_tb(causes[0].__traceback__))
    return own if any(is_of_user(frame.f_code.co_filename) for frame, _ in own) else found + own


def place_of(error):
    """"net.py:12": the innermost line of the user's code. Empty if there is none."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{shown(error.filename)}:{error.lineno}"
    for frame, line in reversed(frames_of(error)):
        if is_of_user(frame.f_code.co_filename):
            return f"{shown(frame.f_code.co_filename)}:{line}"
    return ""


def module_of(error, module):
    """The name of the innermost module of the network that was being called, as "blocks.0 (Attention)"."""
    names = {id(each): name for name, each in module.named_modules()}
    for frame, _ in reversed(frames_of(error)):
        called = frame.f_locals.get("self")
        if id(called) in names:
            return f"{names[id(called)] or 'the network'} ({type(called).__name__})"
    return ""


def local_types(error):
    """The names of the types of all variables in the functions that were being called."""
    return {type(value).__name__ for frame, _ in frames_of(error) for value in frame.f_locals.values()}
