"""Completion in the shell: names of variants, recipes, settings, lexicons and splits.

Mistakes on the line are reported by the command. Settings and recipes are imported when they are completed, and torch only to
complete settings."""

import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import typer

from sememekit.errors import SememekitError

KINDS: Final = {
    "task": ("tasks:TASKS",),
    "encoder": ("encoders:ENCODERS",),
    "decoder": ("decoders:DECODERS",),
    "goal": ("attack.plan:GOALS",),
    "search": ("attack.searches:SEARCHES",),
    "candidates": ("attack.candidates:CANDIDATES",),
    "constraints": ("attack.constraints:CONSTRAINTS",),
    "segmenter": ("text.segmenters:SEGMENTERS",),
    "data set": ("corpora:DATASETS", "corpora.examples:EXAMPLE_SETS"),
    "engine": ("engines:ENGINES",),
    "lexicon format": ("sememes:LEXICON_FORMATS",),
}
"""Kind of a variant, as ``load_variant`` has it -> its tables, as ``room:TABLE``."""
_WITHOUT_PATH: Final = ("open", "function-words", "openhownet", "wordnet")  # formats of a lexicon that need no path


@contextmanager
def words_of_bash() -> Iterator[None]:
    """Give completions of bash the words as they were typed, inside the block.

    bash breaks ``--set decoder.preset=pa`` at ``=`` and ``--source list:h`` at ``:``, passes the parts as words, and replaces
    only the last part. So the parts are joined here, and only the last part of each completion is printed."""
    if os.environ.get("_SEMEMEKIT_COMPLETE") != "complete_bash":
        yield
        return
    parts, current = os.environ.get("COMP_WORDS", "").split("\n"), int(os.environ.get("COMP_CWORD", "0"))
    before = ""
    words: list[str] = []
    for part in parts[: current + 1]:
        mark, behind = bool(part) and not part.strip("=:"), bool(words) and words[-1][-1:] in ("=", ":")
        if words and (mark or (behind and not part.startswith("-"))):
            before = words[-1] + (part if mark else "")
            words[-1] += part
        else:
            before = ""
            words.append(part)
    os.environ |= {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            yield
    finally:
        sys.stdout.writelines(f"{line.removeprefix(before)}\n" for line in printed.getvalue().splitlines())


def completing(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return a completion of names, which are computed when needed."""
    return lambda incomplete: _beginning(incomplete, names())


def names_of(kind: str) -> Callable[[str], list[str]]:
    """Return a completion of the variants of a kind, also from installed packages, without importing them."""
    return completing(lambda: _names(kind))


complete_recipe = completing(lambda: import_module("sememekit.config").recipe_names())
complete_split = completing(lambda: import_module("sememekit.corpora.sources").SPLITS)
complete_slot = completing(
    lambda: [slot for slots in import_module("sememekit.config").COMMAND_SLOTS.values() for slot in slots]
)


def complete_source(incomplete: str) -> list[str]:
    """Formats of ``--source``, then the files behind ``FORMAT:``."""
    name, mark, path = incomplete.partition(":")
    if not mark:
        return _beginning(incomplete, [each if each in _WITHOUT_PATH else f"{each}:" for each in _names("lexicon format")])
    return [f"{name}:{each}" for each in complete_path(path)]


def complete_path(incomplete: str) -> list[str]:
    """Files and folders, also for options that take URLs."""
    typed = incomplete if incomplete.endswith("/") or not incomplete else str(Path(incomplete))
    folder = Path(incomplete) if incomplete.endswith("/") else Path(incomplete).parent
    found = folder.expanduser().iterdir() if folder.expanduser().is_dir() else ()
    return _beginning(typed, sorted(f"{folder / each.name}{'/' if each.is_dir() else ''}" for each in found))


def complete_variant(ctx: typer.Context, incomplete: str) -> list[str]:
    """Variants of the slot before the cursor."""
    return _beginning(incomplete, _names(str(ctx.params.get("slot"))))


def complete_setting(ctx: typer.Context, incomplete: str) -> list[str]:
    """``SLOT.KEY=VALUE`` of ``--set``: slots, then the keys of the variant that is chosen so far, then values."""
    from sememekit.config import COMMAND_SLOTS, USUAL_VARIANTS

    slots = COMMAND_SLOTS.get("train" if ctx.info_name == "sweep" else str(ctx.info_name), ())
    slot, dot, rest = incomplete.partition(".")
    if not dot:
        return _beginning(incomplete, [f"{slot}." for slot in slots])
    if slot not in slots:
        return []
    from sememekit.runs.slots import settings_table

    try:
        if slot == "constraints":
            name, dot, _ = rest.partition(".")
            if not dot:
                return _beginning(incomplete, [f"constraints.{each}." for each in _names("constraints")])
            return _of_table(incomplete, settings_table(slot, name))
        if slot not in USUAL_VARIANTS or slot == "optimizer":
            return _of_table(incomplete, settings_table(slot))
        offered = _of_table(incomplete, settings_table(slot, _chosen(ctx, slot)))
    except SememekitError:  # a wrong word on the line
        return []
    names = [f"{slot}.name={name}" for name in _names(slot)] if rest.startswith("name=") else [f"{slot}.name="]
    return [*_beginning(incomplete, names), *offered]


def complete_search_setting(incomplete: str) -> list[str]:
    """``task.search.KEY=VALUE``."""
    from sememekit.runs.slots import settings_table

    return [each for each in _of_table(incomplete, settings_table("task", "headline")) if each.startswith("task.search.")]


def _chosen(ctx: typer.Context, slot: str) -> str:
    from sememekit.commands._typed_table import typed_table
    from sememekit.config import USUAL_VARIANTS

    overrides = [each for each in ctx.params.get("overrides") or () if "=" in each]
    variants = {each: ctx.params.get(each) for each in USUAL_VARIANTS}
    table = typed_table(ctx.params.get("recipe"), overrides, variants, {})
    return str(table.get(slot, {}).get("name", USUAL_VARIANTS[slot]))


def _of_table(incomplete: str, table: Any) -> list[str]:
    path, equals, _ = incomplete.partition("=")
    if not equals:
        return _beginning(incomplete, [f"{table.prefix}{setting.key}=" for setting in table.settings])
    for setting in table.settings:
        if path == f"{table.prefix}{setting.key}":
            values = setting.choices or (("true", "false") if setting.type == "true or false" else ())
            return _beginning(incomplete, [f"{path}={value}" for value in values])
    return []


def _names(kind: str) -> list[str]:
    from sememekit.config import installed_variants

    found = set(installed_variants(kind))
    for table in KINDS.get(kind, ()):
        module, _, name = table.partition(":")
        found.update(getattr(import_module(f"sememekit.{module}"), name))
    return sorted(found)


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
