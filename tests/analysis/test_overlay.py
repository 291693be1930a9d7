"""A trained model with a changed graph: which weights it uses, what evaluate-ppl says of it, and which runs are refused."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from sememekit.analysis.evaluate_ppl import OverlayComparison, compare_ppl, evaluate_ppl
from sememekit.analysis.explanations.sememes import SememeReader
from sememekit.analysis.explanations.words import OverlayExplanation, explain
from sememekit.analysis.score import OverlaidToken, score
from sememekit.commands._program import app
from sememekit.decoders.sdlm import SDLM
from sememekit.decoders.sense_logits import sense_logits
from sememekit.errors import ConfigError, GraphError
from sememekit.files import RunWarning, typed
from sememekit.jobs.train import train
from sememekit.reports.explanation import compared
from sememekit.runs.overlay import overlaid
from sememekit.runs.run import Run
from sememekit.sememes import SememeGraph
from sememekit.sememes.overlay import HEADER
from tests.small_run import Place


@pytest.fixture
def overlay(tmp_path: Path) -> Path:
    """苹果 gains 机器 in its second sense and loses 品牌, which no other sense has; 无名 is given sememes."""
    file = tmp_path / "overlay.txt"
    file.write_text(f"{HEADER}\n苹果#2\t+机器 -品牌\n无名\t+电脑 +机器\n", encoding="utf-8")
    return file


def opened(run: Path, overlay: Path | None = None) -> Run:
    return Run.open(run, device="cpu", overlay=overlay)


def logits_of(run: Run, hidden: torch.Tensor) -> torch.Tensor:
    decoder = run.task.decoder
    assert isinstance(decoder, SDLM)
    with torch.no_grad():
        return sense_logits(decoder._inputs(hidden))


@pytest.mark.parametrize("normalisation", ["left", "symmetric"])
def test_only_the_changed_senses_score_otherwise(
    place: Place, sdlm: Path, overlay: Path, tmp_path: Path, normalisation: str
) -> None:
    run = sdlm
    if normalisation == "symmetric":
        run = tmp_path / "symmetric"
        train(place.table("sdlm", decoder__normalisation="symmetric", schedule__epochs=1), run)
    before, after = opened(run), opened(run, overlay)
    hidden = torch.randn(7, 6, generator=torch.Generator().manual_seed(1))
    old, new = logits_of(before, hidden), logits_of(after, hidden)
    graph = after.graph
    assert graph is not None
    assert before.graph is not None
    other = [int(graph.sense_offsets[graph.words.index("苹果")]) + 1, int(graph.sense_offsets[graph.words.index("无名")])]
    same = [sense for sense in range(graph.num_senses) if sense not in other]
    assert torch.equal(old[same], new[same]), "to the bit"
    decoder = before.task.decoder
    assert isinstance(decoder, SDLM)
    with torch.no_grad():
        gates = decoder.gate(hidden).sigmoid()
        mixing = decoder.mixing.softmax(dim=-1)
        for sense in other:
            word = int(graph.word_of_sense[sense])
            names = graph.entry(word).senses[sense - int(graph.sense_offsets[word])].sememes
            score = torch.zeros(7)
            for name in names:
                k = before.graph.sememes.index(name)
                degree = int(before.graph.senses_per_sememe[k]) if normalisation == "symmetric" else len(names)
                strength = gates[:, k] / math.sqrt(len(names) * degree)
                for r in range(len(decoder.bases)):
                    score += strength * mixing[k, r] * (hidden @ decoder.bases[r] @ decoder.words.weight[word])
            assert decoder.sense_bias is not None
            torch.testing.assert_close(new[sense], score + decoder.sense_bias[sense], rtol=1e-5, atol=1e-6)


def test_before_and_after_are_those_of_the_two_models(sdlm: Path, place: Place, overlay: Path) -> None:
    report = compare_ppl([Run.open(sdlm, device="cpu")], overlay=overlay, by=["senses"])
    assert isinstance(report, OverlayComparison)
    tokens = place.data.tokens("test")
    sides = []
    for run in (opened(sdlm), opened(sdlm, overlay)):
        nats = np.zeros((2, len(place.data.vocabulary)))
        for scored in run.task.score(tokens):
            np.add.at(nats[0], scored.targets[scored.mask].numpy(), scored.nats[scored.mask].double().numpy())
            np.add.at(nats[1], scored.targets[scored.mask].numpy(), 1)
        sides.append(nats)
    words = {name: place.data.vocabulary.id(name) for name in ("苹果", "无名")}
    others = [number for number in range(len(place.data.vocabulary)) if number not in words.values()]
    chosen: dict[str, list[int]] = {name: [number] for name, number in words.items()}
    chosen |= {"the 2 changed words": list(words.values()), "all other words": others}
    rows = {row.name: row for row in report.rows if row.grouping == "change"}
    assert list(rows) == ["苹果", "无名", "the 2 changed words", "all other words"]
    assert [name for name, row in rows.items() if row.of_which] == ["the 2 changed words"], "counted by themselves, too"
    for name, numbers in chosen.items():
        expected = tuple(math.exp(nats[0][numbers].sum() / nats[1][numbers].sum()) for nats in sides)
        assert rows[name].perplexities == pytest.approx(expected, rel=1e-9)
        assert rows[name].tokens == sides[0][1][numbers].sum()
        assert rows[name].changes[0].relative.value == pytest.approx(expected[1] / expected[0] - 1, rel=1e-6)
        assert expected[0] != expected[1]
    alone = evaluate_ppl(sdlm, by=["senses"], device="cpu")
    assert report.reports[0].perplexity == alone.perplexity
    assert report.reports[0].groups is None
    assert [row.tokens for row in report.rows if row.grouping == "senses"] == [one.tokens for one in alone.groups["senses"]]
    assert report.graph == alone.graph
    assert report.reports[1].graph != alone.graph
    assert [(one.word, one.sense, one.after) for one in report.changes] == [
        ("苹果", 2, tuple(sorted(("机器", "电脑")))),
        ("无名", 1, tuple(sorted(("机器", "电脑")))),
    ]
    counts = dict(zip(place.data.vocabulary.tokens, place.data.vocabulary.counts.tolist(), strict=True))
    assert report.sememe_counts == {"机器": counts["电脑"], "电脑": counts["电脑"] + counts["苹果"]}
    assert OverlayComparison.model_validate_json(report.model_dump_json()) == report


def test_a_sememe_encoder_reads_the_new_sum(place: Place, overlay: Path, tmp_path: Path) -> None:
    table = place.table("softmax", graph__path=str(place.graph), encoder__injection="cell", schedule__epochs=1)
    train(table, tmp_path / "cell")
    ids = place.data.vocabulary.encode(["我", "吃", "梨", "。", "我", "买", "苹果", "。"])
    sides = []
    for run in (opened(tmp_path / "cell"), opened(tmp_path / "cell", overlay)):
        with torch.no_grad():
            sides.append(run.task.contexts(torch.from_numpy(ids)[:, None], run.task.encoder.start(1))[0][:, 0])
    assert torch.equal(sides[0][:6], sides[1][:6]), "before the word is read"
    assert not torch.allclose(sides[0][6], sides[1][6])


def test_runs_that_read_no_graph_as_they_go_are_refused(
    place: Place, softmax: Path, overlay: Path, tmp_path: Path, sdlm: Path
) -> None:
    with pytest.raises(ConfigError, match=r"has no sememe graph to change"):
        compare_ppl([Run.open(softmax, device="cpu")], overlay=overlay)
    cases: dict[str, tuple[dict[str, Any], str]] = {
        "kept": ({}, r"reads no sememes \(.*'softmax'\)"),
        "classes": ({"decoder__classes": "sememes"}, r"has decoder 'class_hsm', which was built from its graph once"),
    }
    for name, (changes, said) in cases.items():
        decoder = "class_hsm" if name == "classes" else "softmax"
        train(place.table(decoder, graph__path=str(place.graph), schedule__epochs=1, **changes), tmp_path / name)
        with pytest.raises(ConfigError, match=said):
            opened(tmp_path / name, overlay).load()
    overlay.write_text(f"{HEADER}\n梨\t+食品\n梨\t-食品\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="its lines change no sense"):
        compare_ppl([Run.open(sdlm, device="cpu")], overlay=overlay)
    overlay.write_text(f"{HEADER}\n电脑\t+平果\n", encoding="utf-8")
    with pytest.raises(GraphError, match=rf"{overlay.name}:2: no sense of the graph has the sememe '平果'"):
        compare_ppl([Run.open(sdlm, device="cpu")], overlay=overlay)


def test_a_sememe_that_was_never_trained_is_refused(place: Place, overlay: Path) -> None:
    """电脑 has 机器 and 电脑; where it never occurs, nothing has shown the gate of 机器 when to open."""
    graph = SememeGraph.load(place.graph)
    counts = place.data.vocabulary.counts.copy()
    vocabulary: Any = SimpleNamespace(counts=counts)
    assert overlaid(Path("RUN"), graph, vocabulary, overlay)[1]
    counts[graph.words.index("电脑")] = 0
    with pytest.raises(ConfigError, match=r"no word with the sememe '机器' occurs.*trained on no example"):
        overlaid(Path("RUN"), graph, vocabulary, overlay)


def test_from_the_word_to_the_table(sdlm: Path, tmp_path: Path) -> None:
    file = tmp_path / "o.txt"

    def called(*words: object) -> Any:
        return CliRunner().invoke(app, [str(word) for word in words])

    first = called("lookup", "--change", "苹果#2", "-品牌", "--graph", sdlm, "--overlay", file)
    assert first.exit_code == 0, first.output
    assert "苹果#2: 品牌 电脑 -> 电脑" in first.stdout
    second = called("lookup", "--change", "梨", "+食品", "--graph", sdlm / "graph.json", "--overlay", file, "--json")
    assert json.loads(second.stdout)["changes"] == 2
    assert "has 3 senses; say which" in called("lookup", "--change", "苹果", "+食品", "--graph", sdlm, "--overlay", file).stderr
    shown = called("evaluate-ppl", sdlm, "--overlay", file, "--device", "cpu")
    assert shown.exit_code == 0, shown.output
    for text in ("苹果#2: 品牌 电脑 -> 电脑", "as trained", f"the same with {file}", "all other words", "2 - 1"):
        assert text in shown.stdout
    report = OverlayComparison.model_validate(
        json.loads(called("evaluate-ppl", sdlm, "--overlay", file, "--json", "--device", "cpu").stdout)
    )
    assert report.overlay == str(file)
    refused = called("evaluate-ppl", sdlm, "--overlay", file, "--cache", "--device", "cpu")
    assert (refused.exit_code, "leave out further runs, --cache and --dynamic" in refused.stderr) == (1, True)
    for wrong in (("lookup", "梨", "--change", "梨", "+食品"), ("lookup", "--sememe", "水果", "--graph", sdlm)):
        assert called(*wrong).exit_code == 2


def test_the_next_change_goes_into_the_overlay_that_was_shown(
    sdlm: Path, overlay: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hints: list[str] = []
    monkeypatch.setattr("sememekit.commands.lookup.hint", lambda text, quiet: hints.append(text))
    for more in ((), ("--overlay", str(overlay))):
        CliRunner().invoke(app, ["lookup", "苹果", "--graph", str(sdlm), *more])
        assert hints.pop().endswith(typed("--graph", sdlm, *more))


@pytest.mark.parametrize("mean", ["counts", "valid"])
def test_a_sememe_that_no_sense_has_left_has_a_mass_of_0_and_no_lift(sdlm: Path, overlay: Path, mean: str) -> None:
    run = opened(sdlm, overlay)
    hidden = torch.zeros(run.task.encoder.output_size)  # type: ignore[attr-defined]
    reader = SememeReader(run, run.task, hidden, mean, None)  # type: ignore[arg-type]
    decoder = run.task.decoder
    assert isinstance(decoder, SDLM)
    with torch.no_grad():
        found = {item.name: item for item in reader.read(hidden, decoder.sense_attribution(hidden, torch.zeros(1).long()))}
    gone = found["品牌"]
    assert (gone.mass, gone.mean, gone.rise, gone.lift) == (0, 0, 0, None)
    assert found["机器"].mean > 0  # type: ignore[operator]


def test_explain_shows_the_changed_senses(sdlm: Path, overlay: Path) -> None:
    before, after = (explain(sdlm, "我 买", overlay=one) for one in (None, overlay))
    assert (before.run, after.run) == (str(sdlm), f"{sdlm} with {overlay}")
    sememes = [
        {frozenset(item.name for item in sense.sememes) for word in one.words if word.word == "苹果" for sense in word.senses}
        for one in (before, after)
    ]
    assert sememes[0] ^ sememes[1] == {frozenset(("品牌", "电脑")), frozenset(("机器", "电脑"))}
    assert [word.probability for word in before.words] != [word.probability for word in after.words]
    lost = next(item for item in after.sememes if item.name == "品牌")
    assert (lost.mass, lost.mean, lost.lift) == (0, 0, None), "no sense has it any more"
    shown = CliRunner().invoke(app, ["explain", str(sdlm), "我 买", "--overlay", str(overlay), "--device", "cpu", "--json"])
    assert json.loads(shown.stdout)["run"] == after.run


def test_explain_has_changed_words_senses_and_sememes_before_and_after(sdlm: Path, overlay: Path) -> None:
    """Each figure comes from an explanation of every word and sememe by one of the two models."""
    whole = [explain(opened(sdlm, one), "我 买", top=100, top_sememes=100) for one in (None, overlay)]
    found = explain(sdlm, "我 买", top=2, top_sememes=2, overlay=overlay)
    assert isinstance(found, OverlayExplanation)
    assert len(found.words) == len(found.before.words) == len(found.sememes) == 2
    assert found.before == explain(sdlm, "我 买", top=2, top_sememes=2)
    words = [{word.word: (rank, word) for rank, word in enumerate(one.words, start=1)} for one in whole]
    assert {one.after.word for one in found.changed_words} == {"苹果", "无名"}
    for one in found.changed_words:
        name = one.after.word
        assert [(one.rank_before, one.before), (one.rank_after, one.after)] == [words[0][name], words[1][name]]
    moved = [abs(one.after.probability - one.before.probability) for one in found.changed_words]
    assert moved == sorted(moved, reverse=True)
    sense, nameless = found.changes
    assert (sense.word, sense.sense, sense.before, sense.after) == ("苹果", 2, ("品牌", "电脑"), ("机器", "电脑"))
    for share, (_, word), names in zip(
        (sense.share_before, sense.share_after), (one["苹果"] for one in words), (sense.before, sense.after), strict=True
    ):
        assert share == next(one.share for one in word.senses if {item.name for item in one.sememes} == set(names))
    assert (nameless.share_before, nameless.share_after) == (1, 1)
    assert {one.after.name for one in found.changed_sememes} == {"品牌", "电脑", "机器", "<unk>"}
    gates = [{item.name: item for item in one.sememes} for one in whole]
    for pair in found.changed_sememes:
        assert (pair.before, pair.after) == (gates[0][pair.after.name], gates[1][pair.after.name])
        for item, rank, side in ((pair.before, pair.rank_before, gates[0]), (pair.after, pair.rank_after, gates[1])):
            order = sorted(side.values(), key=lambda one: (-one.rise, -one.gate, one.name))
            assert order[rank - 1] == item
    lost = next(one for one in found.changed_sememes if one.after.name == "品牌")
    assert lost.after.mass == 0 < lost.before.mass  # type: ignore[operator]


def test_explain_shows_before_and_after_and_counts_what_it_leaves_out(
    sdlm: Path, overlay: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = [
        "explain",
        str(sdlm),
        "我 买",
        "--overlay",
        str(overlay),
        "--device",
        "cpu",
        "--html",
        str(tmp_path / "why.html"),
    ]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0, shown.stderr
    page = (tmp_path / "why.html").read_text(encoding="utf-8")
    for title in ("Probability of changed words", "Their changed senses", "Sememes of these senses, ranked by rise"):
        assert title in shown.stdout
        assert title in page
    assert "苹果#2" in shown.stdout
    for columns in re.findall("<thead>(.*?)</thead>", page):
        names = re.findall("<th[^>]*>([^<]+)</th>", columns)
        assert len(set(names)) == len(names) > 1, "each column is called by a name of its own"
    assert f"with {overlay}:" in shown.stdout.replace("\n", "")
    assert "more have smaller changes" not in shown.stdout + page
    monkeypatch.setattr("sememekit.reports.explanation.SHOWN", 1)
    assert "3 more have smaller changes: --json has them all" in CliRunner().invoke(app, arguments).stdout
    assert "3 more have smaller changes" in (tmp_path / "why.html").read_text(encoding="utf-8")


def test_explain_of_a_layer_without_senses_compares_words_alone(place: Place, overlay: Path, tmp_path: Path) -> None:
    train(place.table(encoder__injection="cell", graph__path=str(place.graph), schedule__epochs=1), tmp_path / "cell")
    found = explain(tmp_path / "cell", "我 买 苹果", overlay=overlay)
    assert isinstance(found, OverlayExplanation)
    assert found.changed_sememes == ()
    assert {(one.share_before, one.share_after) for one in found.changes} == {(None, None)}
    assert all(one.before.probability != one.after.probability for one in found.changed_words), "it read another sum"
    assert [table.title for table in compared(found)] == ["Probability of changed words"]


@pytest.mark.parametrize("carry", [False, True])
def test_scores_before_and_after_are_those_of_the_two_models(sdlm: Path, overlay: Path, carry: bool) -> None:
    lines = ["我 买 苹果 。", "", *["人 吃 梨 。"] * 40]
    before, after = ([*score(opened(sdlm, one), lines, carry=carry)] for one in (None, overlay))
    found = [row for row in score(opened(sdlm), iter(lines), overlay=overlay, carry=carry) if isinstance(row, OverlaidToken)]
    assert [row.model_dump(exclude={"nats_overlay"}) for row in found] == [row.model_dump() for row in before]
    assert [row.nats_overlay for row in found] == [row.nats for row in after]
    assert [row.nats for row in before] != [row.nats for row in after]


def test_score_shows_a_column_more_and_both_sums(sdlm: Path, softmax: Path, overlay: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("我 买 苹果 。\n", encoding="utf-8")
    rows = [row for row in score(opened(sdlm), ["我 买 苹果 。"], overlay=overlay) if isinstance(row, OverlaidToken)]
    arguments = ["score", str(sdlm), str(text), "--overlay", str(overlay), "--device", "cpu"]
    shown = CliRunner().invoke(app, arguments)
    header, _, *lines = (line.split("\t") for line in shown.stdout.splitlines())
    assert (header[3], header[-1]) == ("nats", "nats_overlay")
    assert [(float(line[3]), float(line[-1])) for line in lines] == [
        (pytest.approx(row.nats, abs=1e-6), pytest.approx(row.nats_overlay, abs=1e-6)) for row in rows[1:]
    ]
    before, after = (-sum(one for one in column if one is not None) for column in zip(*_nats(rows), strict=True))
    told = f"log-probability of all words: {before:.4f} as trained, {after:.4f} with {overlay} ({after - before:+.4f})"
    assert told in shown.stderr
    as_json = CliRunner().invoke(app, [*arguments, "--json"])
    assert told in as_json.stderr
    report = json.loads(as_json.stdout)
    assert (report["overlay"], report["tokens"]) == (str(overlay), [row.model_dump() for row in rows])
    refused = CliRunner().invoke(app, ["score", str(softmax), str(text), "--overlay", str(overlay), "--device", "cpu"])
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "has no sememe graph to change" in refused.stderr
    elsewhere = CliRunner().invoke(app, ["generate", str(sdlm), "我", "--overlay", str(overlay)])
    assert "--overlay is no option of generate: what a changed annotation does is measured by score" in elsewhere.stderr


def _nats(rows: list[OverlaidToken]) -> list[tuple[float | None, float | None]]:
    return [(row.nats, row.nats_overlay) for row in rows]


def test_words_that_are_rare_or_absent_are_pointed_out(sdlm: Path, overlay: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command that reads an overlay or writes one for a run warns once; a graph file has no counts."""
    told = "its gate was trained on few examples"
    monkeypatch.setattr("sememekit.sememes.statistics.FEW", 10**6)
    changed = ["lookup", "--change", "<unk>", "+水果", "--overlay", str(overlay), "--graph"]
    overlay.unlink()
    assert told not in shown_by([*changed, str(sdlm / "graph.json")]).stderr
    overlay.unlink()
    added = shown_by([*changed, str(sdlm)])
    text = overlay.with_name("text.txt")
    text.write_text("我 买 苹果 。\n", encoding="utf-8")
    options = ["--overlay", str(overlay), "--device", "cpu"]
    commands = (["evaluate-ppl", str(sdlm)], ["explain", str(sdlm), "我 买"], ["score", str(sdlm), str(text)])
    perplexity, *others = (shown_by([*command, *options]) for command in commands)
    for one in (added, perplexity, *others):
        assert one.stderr.count(told) == 1
        assert "words with the sememe 水果 occur only" in one.stderr
    assert "<unk> does not occur in test" in perplexity.stderr
    with pytest.warns(RunWarning, match=told):
        _ = opened(sdlm, overlay).graph
    never = "sememekit.sememes.statistics.sememe_counts"
    monkeypatch.setattr(never, lambda graph, counts: np.zeros(graph.num_sememes, dtype=np.int64))
    overlay.unlink()
    refused = shown_by([*changed, str(sdlm)], code=1)
    assert "no word with the sememe '水果' occurs in the text" in refused.stderr
    assert not overlay.exists()


def shown_by(arguments: list[str], code: int = 0) -> Any:
    found = CliRunner().invoke(app, arguments)
    assert found.exit_code == code, found.output
    return found
