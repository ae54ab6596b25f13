"""Started as `python -c`: imports the package trainyard_export from a file descriptor and runs its `main`.

python -c START DESCRIPTOR ARGUMENT …; the file has a JSON object {"program.py": text, …}."""
import importlib.abc
import importlib.machinery
import json
import linecache
import os
import sys

PACKAGE = "trainyard_export"


class Embedded(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, sources):
        self.sources = sources

    def find_spec(self, name, path=None, target=None):
        part = name.removeprefix(PACKAGE + ".")
        if name == PACKAGE or (part != name and part + ".py" in self.sources):
            return importlib.machinery.ModuleSpec(name, self, is_package=name == PACKAGE)
        return None

    def exec_module(self, module):
        file = module.__name__.removeprefix(PACKAGE + ".") + ".py"
        if file not in self.sources:
            return
        text, name = self.sources[file], f"<trainyard export>/{file}"
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)  # for tracebacks
        exec(compile(text, name, "exec"), module.__dict__)


with os.fdopen(int(sys.argv[1])) as sources:
    embedded = Embedded(json.load(sources))
sys.meta_path.append(embedded)
sys.path[:] = [folder for folder in sys.path if folder]  # not the current folder, as for `python FILE`
arguments = sys.argv[2:]
sys.argv[1:] = []
from trainyard_export.program import main  # noqa: E402

code = main(arguments, embedded.sources["operators"], embedded.sources["tasks"])
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)  # without the user's handlers at exit
