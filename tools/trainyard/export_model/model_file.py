"""The .pt2 file: metadata beside the graph, reference, and no trace of the author's folders."""
import json
import os
import pathlib
import shutil
import struct
import sys
import tempfile
import zipfile

import torch

from .problems import Refused
from .two_graphs import add_entry, add_evaluation

REFERENCE = "trainyard/reference.safetensors"  # torch.export.load decodes all of extra/ as text
TYPES = {torch.float32: "F32", torch.float64: "F64", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
         torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL"}


def bytes_of(x):
    """The values row by row."""
    return x.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if x.numel() else b""


def safetensors(tensors, about):
    """The tensors in the format of safetensors: length of the header, header, values."""
    header, values, at = {"__metadata__": about}, [], 0
    for name, x in tensors.items():
        data = bytes_of(x)
        header[name] = {"dtype": TYPES[x.dtype], "shape": list(x.shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
        values.append(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([struct.pack("<Q", len(text)), text, *values])


def check_destination(out):
    """Refuse a file that cannot be written, before the network is built."""
    if out.suffix != ".pt2":
        raise Refused(f"{out} does not end in .pt2", f"write -o {out.with_suffix('.pt2')}")
    if out.is_dir():
        raise Refused(f"{out} is a folder", "name a file")
    if not out.parent.is_dir():
        raise Refused(f"there is no folder {out.parent}", "make it, or name another")
    if not os.access(out.parent, os.W_OK):
        raise Refused(f"you have no write access to the folder {out.parent}", "name another file")


def text_entries(archive):
    for name in archive.namelist():
        if not name.rpartition("/")[2].startswith(("weight_", "tensor_")) or name.endswith(".json"):
            if not name.endswith(REFERENCE):
                yield name


def check_paths(file, author):
    """Refuse a file in which a folder of the author's machine is named."""
    folders = {str(author.resolve().parent), str(pathlib.Path.cwd()), str(pathlib.Path.home()), sys.prefix,
               str(pathlib.Path(torch.__file__).parent), str(file.parent.resolve())}
    with zipfile.ZipFile(file) as archive:
        for name in text_entries(archive):
            data = archive.read(name)
            for folder in folders - {"/"}:
                if (folder.rstrip("/") + "/").encode() in data:
                    raise Refused(f"the file would name your folder {folder} (in {name.partition('/')[2]})",
                                  "remove paths from the names of modules and buffers")


class Draft:
    """A file beside its destination, which it replaces when it is complete, and files that belong to it."""

    def __init__(self, out):
        self.out = out
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
        self.file = self.folder / out.name  # the archive has a folder of this name
        self.evaluation = self.folder / "evaluation.pt2"  # whose graph is in the file
        self.more = []  # names of files beside it

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def write(self, traced, about, reference):
        traced.program.example_inputs = traced.evaluation.example_inputs = None  # a pickle
        torch.export.save(traced.program, str(self.file), extra_files={"trainyard.json": json.dumps(about, indent=1)})
        torch.export.save(traced.evaluation, str(self.evaluation))
        add_evaluation(self.file, self.evaluation)
        with zipfile.ZipFile(self.file, "a", zipfile.ZIP_STORED) as archive:
            root = archive.namelist()[0].partition("/")[0]
            add_entry(archive, f"{root}/{REFERENCE}", safetensors(reference, {"format": "pt"}))

    def add(self, name, content):
        (self.folder / name).write_bytes(content)
        self.more.append(name)

    def replace(self):
        names = [self.out.name, *self.more]
        for name in names:
            with open(self.folder / name, "rb") as written:
                os.fsync(written.fileno())
        for name in names:
            os.replace(self.folder / name, self.out.parent / name)
