"""The subcommand settings; the plain functions are in ``sememekit.runs.slots``."""

from typing import Annotated, Any

from sememekit.commands._completion import complete_slot, complete_variant
from sememekit.commands._options import Json, argument
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
    slot: Annotated[str | None, argument("[SLOT]", _TABLES, autocompletion=complete_slot)] = None,
    name: Annotated[str | None, argument("[NAME]", _VARIANTS, autocompletion=complete_variant)] = None,
    json: Json = False,
) -> None:
    """List every setting of --set SLOT.KEY=VALUE, with its meaning, its values and its default.

    Settings of preprocess and of other commands without --set are options: see COMMAND --help."""
    from sememekit.runs.slots import SettingsList, has_variants, settings_slots, settings_table, slot_info

    report: Any
    rows: list[tuple[str, ...]]
    title, more = "", ""
    if slot is None:
        report, columns, more = SettingsList(slots=settings_slots()), ["slot", "command", "what it is", "names"], "SLOT [NAME]"
        rows = [(info.slot, info.command, info.summary, " ".join(info.variants) or "–") for info in report.slots]
    elif name is None and has_variants(slot):
        report, columns, more = slot_info(slot), ["name", "", "what it is"], f"{slot} NAME"
        title = f"{slot}: {report.summary}"
        rows = [(each, "usual" if each == report.usual else "", summary) for each, summary in report.variants.items()]
    else:
        report, columns = settings_table(slot, name or ""), ["setting", "values", "default", "meaning"]
        title = f"{slot} {name}: {report.summary}" if name else f"{slot}: {report.summary}"
        rows = [(f"{report.prefix}{one.key}", one.values, one.default_text, one.told) for one in report.settings]
    if json:
        print_json(report)
    elif not rows:
        say(f"{title} No settings.")
    else:
        print_table(title, columns, rows, numeric=len(columns))
        remark(f"next: sememekit settings {more}", quiet=not more)
