"""Frames of pandas or polars, and results of Parquet, TensorBoard and W&B as frames, with the own readers of each tool."""
from __future__ import annotations

import importlib
import json
import struct
from pathlib import Path
from typing import Any, Iterable, Iterator


def frame_of(rows: Iterable[dict[str, Any]], polars: bool) -> Any:
    """A frame with a column for each name in the rows. A column with numbers and texts gets texts."""
    rows = list(rows)
    columns = {name: [row.get(name) for row in rows] for name in dict.fromkeys(name for row in rows for name in row)}
    for name, values in columns.items():
        kinds = {type(value) for value in values if value is not None}
        kind = str if str in kinds else float if float in kinds else None
        if kind is not None and len(kinds) > 1:
            columns[name] = [value if value is None else kind(value) for value in values]
    return importlib.import_module("polars" if polars else "pandas").DataFrame(columns)


def _tensorboard(folder: Path) -> Iterator[dict[str, Any]]:
    """One row per folder with event files: parameters of the page HParams, and the last value of each scalar."""
    from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import metadata
    from tensorboard.util import tensor_util
    for place in sorted({file.parent for file in folder.rglob("*tfevents*")}):
        events = EventAccumulator(str(place), {"tensors": 1})
        events.Reload()
        row: dict[str, Any] = {"run": str(place.relative_to(folder))}
        for name in events.Tags()["tensors"]:
            plugin = events.SummaryMetadata(name).plugin_data
            if name == metadata.SESSION_START_INFO_TAG:
                parameters = metadata.parse_session_start_info_plugin_data(plugin.content).hparams
                row |= {key: getattr(value, value.WhichOneof("kind")) for key, value in parameters.items()}
            elif plugin.plugin_name == "scalars":
                row[name] = tensor_util.make_ndarray(events.Tensors(name)[-1].tensor_proto).item()
        yield row


def _log_entries(log: bytes) -> Iterator[bytes]:
    """The entries of a log of W&B, which has the form of LevelDB's: chunks with 7 bytes of header, in blocks of 32 KiB."""
    at, entry = 7, b""
    while at + 7 <= len(log):
        size, kind = struct.unpack_from("<HB", log, at + 4)
        entry, at = entry + log[at + 7:at + 7 + size], at + 7 + size
        if kind in (1, 4) and at <= len(log):  # whole, or the last part
            yield entry
            entry = b""
        at += -at % 32768 if -at % 32768 < 7 else 0


def _wandb(folder: Path) -> Iterator[dict[str, Any]]:
    """One row per offline run of W&B: its configuration, and the last value of each metric."""
    from wandb.proto.wandb_internal_pb2 import Record
    for file in sorted(folder.rglob("*.wandb")):
        row: dict[str, Any] = {"run": file.stem.removeprefix("run-")}
        for record in map(Record.FromString, _log_entries(file.read_bytes())):
            for item in [*record.run.config.update, *record.config.update, *record.history.item, *record.summary.update]:
                name = item.key or "/".join(item.nested_key)
                if not name.startswith("_"):
                    row[name] = json.loads(item.value_json)
        yield row


def read(path: str | Path, polars: bool = False) -> Any:
    """Results of other tools as a frame for `compare`: a Parquet file, or a folder with event files of TensorBoard or offline
    runs of W&B. The latter have one row per run: `run`, parameters, and last values. FileNotFoundError if there is none."""
    path = Path(path)
    if path.suffix == ".parquet" or path.is_dir() and any(path.glob("*.parquet")):
        return importlib.import_module("polars" if polars else "pandas").read_parquet(path)
    for pattern, rows in (("*tfevents*", _tensorboard), ("*.wandb", _wandb)):
        if any(path.rglob(pattern)):
            return frame_of(rows(path), polars)
    raise FileNotFoundError(f"{path} has neither Parquet files, nor event files of TensorBoard, nor offline runs of W&B")
