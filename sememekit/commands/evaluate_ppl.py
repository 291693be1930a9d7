"""The subcommand evaluate-ppl; the plain function is ``sememekit.analysis.evaluate.evaluate_ppl``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sememekit.commands._exit import fail_usage
from sememekit.commands._options import Debug, Device, Dtype, EvaluationData, Json, Quiet, Run, Split, TrustCode, Which
from sememekit.commands._render import print_fields, print_json, print_table, progress_bars, remark, say

if TYPE_CHECKING:
    from sememekit.protocols.adaptation import Adaptation, AdaptationReport

EXAMPLES = (
    "sememekit evaluate-ppl runs/sdlm --by senses",
    "sememekit evaluate-ppl runs/sdlm --cache --tune",
    "sememekit evaluate-ppl runs/mos --dynamic --dynamic-preset mos-ptb",
)


class Grouping(StrEnum):
    """What ``--by`` takes."""

    senses = "senses"
    sememes = "sememes"


SHOWN_POINTS = 10
"""Rows of a grid that are printed; --json has all."""

_CACHE = "Cache of what was read"
_DYNAMIC = "Dynamic evaluation"
_TUNING = "Tuning on the validation split"


def complete_cache_preset(incomplete: str) -> list[str]:
    """Names of the published settings of the cache."""
    from sememekit.protocols import CACHE_PRESETS

    return [name for name in CACHE_PRESETS if name.startswith(incomplete)]


def complete_dynamic_preset(incomplete: str) -> list[str]:
    """Names of the published settings of dynamic evaluation."""
    from sememekit.protocols import DYNAMIC_PRESETS

    return [name for name in DYNAMIC_PRESETS if name.startswith(incomplete)]


Cache = Annotated[
    bool, typer.Option("--cache", help="Mix in the words that followed similar contexts.", rich_help_panel=_CACHE)
]
CachePreset = Annotated[
    str | None,
    typer.Option(
        "--cache-preset", help="Published: ptb, wikitext-2.", rich_help_panel=_CACHE, autocompletion=complete_cache_preset
    ),
]
Theta = Annotated[
    float | None, typer.Option("--theta", min=0.0, help="How sharply similar contexts are preferred.", rich_help_panel=_CACHE)
]
Lambda = Annotated[float | None, typer.Option("--lambda", help="Share of the cache, between 0 and 1.", rich_help_panel=_CACHE)]
Window = Annotated[
    int | None, typer.Option("--window", min=1, help="How many positions are remembered.", rich_help_panel=_CACHE)
]
CacheStart = Annotated[
    Literal["history", "full-window"] | None,
    typer.Option(
        "--cache-start", help="As soon as there is a history, or once more than a window is read.", rich_help_panel=_CACHE
    ),
]
Dynamic = Annotated[bool, typer.Option("--dynamic", help="Take a gradient step after each segment.", rich_help_panel=_DYNAMIC)]
DynamicPreset = Annotated[
    str | None,
    typer.Option(
        "--dynamic-preset",
        help="Published: awd-ptb, awd-ptb-paper, awd-wikitext-2, mos-ptb, mos-wikitext-2.",
        rich_help_panel=_DYNAMIC,
        autocompletion=complete_dynamic_preset,
    ),
]
Scaling = Annotated[
    Literal["krause", "mos"] | None,
    typer.Option("--scaling", help="What rate, decay and epsilon are relative to.", rich_help_panel=_DYNAMIC),
]
DynamicRate = Annotated[float | None, typer.Option("--dynamic-rate", help="Rate of the steps (eta).", rich_help_panel=_DYNAMIC)]
DynamicDecay = Annotated[
    float | None,
    typer.Option("--dynamic-decay", min=0.0, help="Pull back to the trained weights (lambda).", rich_help_panel=_DYNAMIC),
]
DynamicEpsilon = Annotated[
    float | None, typer.Option("--dynamic-epsilon", help="Damps steps of quiet weights.", rich_help_panel=_DYNAMIC)
]
DynamicSegment = Annotated[
    int | None, typer.Option("--dynamic-segment", min=1, help="Words scored before a step; 5.", rich_help_panel=_DYNAMIC)
]
StatisticsTokens = Annotated[
    int | None,
    typer.Option(
        "--statistics-tokens", min=1, help="Gradient statistics from so many training tokens; all.", rich_help_panel=_DYNAMIC
    ),
]
Tune = Annotated[
    bool, typer.Option("--tune", help="Find the settings that were not given, then use them.", rich_help_panel=_TUNING)
]
TuneTokens = Annotated[
    int | None, typer.Option("--tune-tokens", min=2, help="Read only the first so many tokens.", rich_help_panel=_TUNING)
]


_CACHE_FLAGS = {
    "--cache-preset": "preset",
    "--theta": "theta",
    "--lambda": "weight",
    "--window": "window",
    "--cache-start": "start",
}
_DYNAMIC_FLAGS = {
    "--dynamic-preset": "preset",
    "--scaling": "scaling",
    "--dynamic-rate": "rate",
    "--dynamic-decay": "decay",
    "--dynamic-epsilon": "epsilon",
    "--dynamic-segment": "segment",
}


def command(
    run: Run,
    split: Split = "test",
    by: Annotated[
        list[Grouping] | None,
        typer.Option("--by", help="Also by the number of senses or of sememes of a word; may be repeated."),
    ] = None,
    data: EvaluationData = None,
    graph: Annotated[Path | None, typer.Option("--graph", help="Sememe graph for --by, where the run has none.")] = None,
    batch_size: Annotated[
        int | None, typer.Option("--batch-size", min=1, help="Columns the text is read in; 1 reads it from end to end.")
    ] = None,
    which: Which = "best",
    cache: Cache = False,
    cache_preset: CachePreset = None,
    theta: Theta = None,
    lambda_: Lambda = None,
    window: Window = None,
    cache_start: CacheStart = None,
    dynamic: Dynamic = False,
    dynamic_preset: DynamicPreset = None,
    scaling: Scaling = None,
    dynamic_rate: DynamicRate = None,
    dynamic_decay: DynamicDecay = None,
    dynamic_epsilon: DynamicEpsilon = None,
    dynamic_segment: DynamicSegment = None,
    statistics_tokens: StatisticsTokens = None,
    tune: Tune = False,
    tune_tokens: TuneTokens = None,
    device: Device = "auto",
    dtype: Dtype = None,
    json: Json = False,
    quiet: Quiet = False,
    trust_code: TrustCode = False,
    debug: Debug = False,
) -> None:
    """Perplexity under the one protocol of docs/perplexity.md, with its signature.

    With --cache or --dynamic the model learns from the text as it reads; the run stays as it is.
    """
    from sememekit.analysis.evaluate import evaluate_ppl

    adaptation = adaptation_of(
        cache={"preset": cache_preset, "theta": theta, "weight": lambda_, "window": window, "start": cache_start},
        dynamic={
            "preset": dynamic_preset,
            "scaling": scaling,
            "rate": dynamic_rate,
            "decay": dynamic_decay,
            "epsilon": dynamic_epsilon,
            "segment": dynamic_segment,
        },
        with_cache=cache,
        with_dynamic=dynamic,
        tune=tune,
        tune_tokens=tune_tokens,
        statistics_tokens=statistics_tokens,
    )
    with progress_bars(quiet) as show:
        report = evaluate_ppl(
            run,
            split=split,
            by=list(dict.fromkeys(one.value for one in by or ())),
            data=data,
            graph=graph,
            batch_size=batch_size,
            which=which,
            device=device,
            dtype=dtype,
            adaptation=adaptation,
            progress=show,
        )
    if json:
        print_json(report)
        return
    skipped = ("run", "split", "graph", "signature", "groups", "adaptation")
    print_fields(f"Perplexity of {run} on {report.split}", report, skip=skipped)
    if report.adaptation is not None:
        print_adaptation(report.adaptation)
    for grouping, groups in (report.groups or {}).items():
        rows = [(group.name, group.perplexity, group.tokens, f"{group.share:.1%}") for group in groups]
        print_table(f"By {grouping} of the word", ("words", "perplexity", "tokens", "share"), rows)
    say(f"signature: {report.signature}")


def adaptation_of(
    *,
    cache: dict[str, Any],
    dynamic: dict[str, Any],
    with_cache: bool,
    with_dynamic: bool,
    tune: bool,
    tune_tokens: int | None,
    statistics_tokens: int | None,
) -> Adaptation | None:
    """What the flags ask for; None where the model is to stay as it is. A flag without the one it belongs to is refused."""
    given = {flag for flag, name in _CACHE_FLAGS.items() if cache[name] is not None}
    given |= {flag for flag, name in _DYNAMIC_FLAGS.items() if dynamic[name] is not None}
    given |= {"--statistics-tokens"} if statistics_tokens is not None else set()
    needed = (
        ("--cache", with_cache, given & _CACHE_FLAGS.keys()),
        ("--dynamic", with_dynamic, given - _CACHE_FLAGS.keys()),
        ("--cache, --dynamic or both", with_cache or with_dynamic, {"--tune"} if tune else set()),
        ("--tune", tune, {"--tune-tokens"} if tune_tokens is not None else set()),
    )
    for flag, there, wanting in needed:
        if wanting and not there:
            fail_usage(f"{', '.join(sorted(wanting))} is of no use without {flag}")
    weight, rate, epsilon = cache["weight"], dynamic["rate"], dynamic["epsilon"]
    if weight is not None and not 0.0 < weight < 1.0:
        fail_usage(f"--lambda must be between 0 and 1, given {weight}")
    for flag, value in (("--dynamic-rate", rate), ("--dynamic-epsilon", epsilon)):
        if value is not None and not value > 0.0:
            fail_usage(f"{flag} must be greater than 0, given {value}")
    if not with_cache and not with_dynamic:
        return None
    from sememekit.protocols import CacheGrid, DynamicGrid, cache_settings, dynamic_settings
    from sememekit.protocols.adaptation import Adaptation, Tuning

    tuning = None
    if tune:
        fixed = {"thetas": cache["theta"], "weights": cache["weight"], "windows": cache["window"]}
        cache_grid = CacheGrid(**{name: (value,) for name, value in fixed.items() if value is not None})
        cache_grid = cache_grid.model_copy(update={"start": cache["start"] or cache_grid.start})
        kept = {"rates": dynamic["rate"], "decays": dynamic["decay"]}
        dynamic_grid = DynamicGrid(**{name: (1.0,) for name, value in kept.items() if value is not None})
        tuning = Tuning(tokens=tune_tokens, cache=cache_grid, dynamic=dynamic_grid)
    return Adaptation(
        cache=cache_settings(**cache) if with_cache else None,
        dynamic=dynamic_settings(**dynamic) if with_dynamic else None,
        tuning=tuning,
        statistics_tokens=statistics_tokens,
    )


def print_adaptation(report: AdaptationReport) -> None:
    """The settings in use, and the grid that they were found on."""
    tuning = report.tuning
    if tuning is not None:
        where = f"{tuning.tokens:,} tokens of {tuning.split}, {tuning.static_perplexity:,.2f} as trained"
        if tuning.dynamic is not None:
            columns = ("rate", "decay (lambda)", "epsilon", "perplexity")
            steps = [(p.settings.rate, p.settings.decay, p.settings.epsilon, p.perplexity) for p in tuning.dynamic]
            print_table(_title("Dynamic evaluation", where, len(steps)), columns, steps[:SHOWN_POINTS], numeric=0)
        if tuning.cache is not None:
            columns = ("theta", "lambda", "window", "perplexity")
            points = [(p.settings.theta, p.settings.weight, p.settings.window, p.perplexity) for p in tuning.cache]
            print_table(_title("Cache", where, len(points)), columns, points[:SHOWN_POINTS], numeric=0)
        if tuning.at_the_edge:
            names = ", ".join(tuning.at_the_edge)
            remark(f"best at the edge of what was tried: {names}; a value beyond may be better still", quiet=False)
    rows: list[tuple[str, object]] = [("perplexity as trained", report.static_perplexity)]
    for name, settings in (("cache", report.cache), ("dynamic", report.dynamic), ("the same in krause scaling", report.exact)):
        if settings is not None:
            rows.append((name, settings.model_dump()))
    if report.statistics_batches is not None:
        rows.append(("batches of the statistics", report.statistics_batches))
    print_table("Learnt while reading", ("", ""), rows)


def _title(name: str, where: str, points: int) -> str:
    shown = f"the best {SHOWN_POINTS} of {points} settings" if points > SHOWN_POINTS else f"{points} settings"
    return f"{name}: {shown} on {where}"
