"""The subcommand settings; the plain functions are in ``sememekit.runs.slots``."""

from typing import Annotated

import typer

from sememekit.commands._completion import complete_slot, complete_variant
from sememekit.commands._options import Json, fail_usage
from sememekit.commands._printing import print_json, print_table, remark, say

EXAMPLES = (
    "sememekit settings",
    "sememekit settings schedule",
    "sememekit settings decoder",
    "sememekit settings decoder sdlm",
)

_TABLES = "Table of settings, such as task, encoder or decoder. Default: all."
_VARIANTS = "Variant in the table, such as sdlm or package.module:Class. Default: all."


def command(
    slot: Annotated[str | None, typer.Argument(metavar="[SLOT]", help=_TABLES, autocompletion=complete_slot)] = None,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help=_VARIANTS, autocompletion=complete_variant)] = None,
    json: Json = False,
) -> None:
    """List every setting of --set SLOT.KEY=VALUE, with its meaning, its values and its default.

    Settings of preprocess and of other commands without --set are options: see COMMAND --help."""
    from sememekit.runs.slots import SettingsList, has_variants, settings_slots, settings_table, slot_info

    if slot is None:
        if name is not None:
            fail_usage("a NAME needs its SLOT")
        slots = settings_slots()
        if json:
            print_json(SettingsList(slots=slots))
            return
        rows = [(info.slot, info.command, info.summary, " ".join(info.variants) or "–") for info in slots]
        print_table("", ("slot", "command", "what it is", "names"), rows, numeric=4)
        remark("next: sememekit settings SLOT [NAME]", quiet=False)
    elif name is None and has_variants(slot):
        info = slot_info(slot)
        if json:
            print_json(info)
            return
        names = [(each, "usual" if each == info.usual else "", summary) for each, summary in info.variants.items()]
        print_table(f"{slot}: {info.summary}", ("name", "", "what it is"), names, numeric=3)
        remark(f"next: sememekit settings {slot} NAME", quiet=False)
    else:
        table = settings_table(slot, name or "")
        if json:
            print_json(table)
            return
        if not table.settings:
            say(f"{slot} {name}: {table.summary} No settings.")
            return
        title = f"{slot} {name}" if name else slot
        lines = [(f"{table.prefix}{one.key}", one.values, one.default_text, one.told) for one in table.settings]
        print_table(f"{title}: {table.summary}", ("setting", "values", "default", "meaning"), lines, numeric=4)
