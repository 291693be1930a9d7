"""The files of the splits of a set of examples."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from sememekit.corpora.examples.base import ExampleSet
from sememekit.corpora.sources import SPLITS, require_file, splits_in_name
from sememekit.errors import ConfigError, DataError
from sememekit.files import opening, packing_of, typed, unpacked_name, warn

_ENDINGS: Final = (".jsonl", ".json", ".ndjson", ".parquet", ".csv", ".tsv", ".txt")


def files_of_splits(
    kind: ExampleSet, source: Path | None, given: Mapping[str, Sequence[Path]], *, has_vocabulary: bool = False
) -> dict[str | None, Sequence[Path]]:
    """Return split -> files; the key None stands for a file that will be divided.

    ``source`` is a folder with a file for each split, or one file, which is divided. ``given``, split -> files, replaces files
    of the folder; several are concatenated. With ``has_vocabulary`` (of other data) no split is required, and a single file is
    test. Raises ConfigError: nothing is given, or a test set is given without the vocabulary of other data. Raises DataError: a
    file is absent or ambiguous."""
    if kind.test_only and not has_vocabulary and not given.get("train"):
        raise ConfigError(
            "this set is a test set for models of other data; say which with --vocabulary RUN (a run folder, or prepared data)"
        )
    if source is None and not given:
        source = kind.default_source()
    if source is None and not given.get("train") and not (has_vocabulary and given):
        raise ConfigError(
            "SOURCE is missing; give a folder with files for train, valid and test, or --train, --valid and --test"
        )
    if source is not None and not source.exists():
        raise DataError(f"{source}: no such file or folder")
    if source is not None and source.is_file() and not given and kind.parts and not has_vocabulary:
        if not packing_of(source.name) and not _begins(source, kind.part_begins):
            plain = typed("sememekit", "preprocess", "plain", source, "--out", "DIR")
            raise DataError(
                f"{source}: the files of this set ({', '.join(kind.parts)}) begin with {kind.part_begins.decode()!r}, and this "
                f"file does not; read running text by: {plain}; pairs of your own (JSON lines, or source TAB target) by: "
                "sememekit preprocess gigaword"
            )
        raise DataError(
            f"{source}: one of the {len(kind.parts)} files of this set ({', '.join(kind.parts)}), and a part is not divided; "
            "give the folder of all files, or name them with --train, --valid and --test; to evaluate a model on this file "
            "alone add --vocabulary RUN"
        )
    if source is not None and source.is_file() and not given:
        return {"test" if has_vocabulary else None: [source]}
    files: dict[str | None, Sequence[Path]] = {}
    for split in SPLITS:
        if given.get(split):
            files[split] = [path if kind.reads_folder(path) else require_file(path) for path in given[split]]
        elif source is not None and source.is_file():
            if split == "train":
                files[split] = [source]
        elif source is not None and (found := _find(source, split, kind)) is not None:
            files[split] = [found]
    if has_vocabulary and not files:
        raise DataError(
            f"{source}: no file name contains the name of a split (train, valid, test); name the file with --test FILE"
        )
    if {"train", "test"} == set(files) and not has_vocabulary and not kind.held_out_stays_out:
        warn("no file is named for valid: of 20 examples of train, one is valid; --valid FILE names others")
        files[None] = files.pop("train")
        return files
    for split in () if has_vocabulary else ("train", "valid"):
        if split not in files:
            names = " or ".join(f"a name with {alias!r}" for alias in kind.split_names[split])
            place = f"{source}: no file for the split" if source is not None else "no file for the split"
            raise DataError(f"{place} {split!r} ({names}, ending in {', '.join(_ENDINGS)}); give it with --{split} FILE")
    return files


def side_by_side(path: Path, kind: ExampleSet) -> list[Path]:
    """Return the parallel files of ``path``, such as ``s2.dev`` and ``labels.dev`` of ``s1.dev``. DataError: one is absent."""
    if kind.reads_folder(path):
        return [path]
    return [require_file(path.with_name(name)) for name in kind.beside_names(path.name)]


def _begins(path: Path, start: bytes) -> bool:
    with opening(path, DataError), path.open("rb") as stream:
        return stream.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(start)


def _find(folder: Path, split: str, kind: ExampleSet) -> Path | None:
    """Find the file of a folder with the name of the split in its name."""
    found = []
    for path in sorted(folder.iterdir()):
        name = unpacked_name(path.name.lower())
        if split not in splits_in_name(name, kind.split_names):
            continue
        if kind.reads_folder(path):
            found.append(path)
        if not path.is_file():
            continue
        first = len(kind.beside_names(path.name)) > 1
        if first or (name.endswith(_ENDINGS) and not kind.is_beside(path.name)):
            found.append(path)
    if len(found) > 1:
        by_line = [path for path in found if unpacked_name(path.name).endswith(".jsonl")]
        if len(by_line) == 1:  # the official archive has each split as .jsonl and as .txt
            return by_line[0]
        names = ", ".join(path.name for path in found)
        raise DataError(f"{folder}: several files could be the split {split!r} ({names}); name them with --{split} FILE")
    return found[0] if found else None
