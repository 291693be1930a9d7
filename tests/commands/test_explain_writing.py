"""Explanations of written texts: the headlines that a small model has learned, with an overlay and without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from typer.testing import CliRunner

from sememekit.analysis.explanations.written_text import OverlayWriting, explain_writing, ranks_among
from sememekit.commands._program import app
from sememekit.jobs.train import train
from sememekit.reports.explanation import text_page
from sememekit.runs.run import Run
from sememekit.sememes.overlay import HEADER
from tests.pages import check_page
from tests.small_pairs import LINES, WRITTEN, PairPlace

runner = CliRunner()


def test_explain_shows_sememes_and_attention(headlines: Path, opened: list[Path], tmp_path: Path) -> None:
    explanation = explain_writing(headlines, LINES[0])
    assert [word.word for word in explanation.words] == WRITTEN[0].split()
    for word in explanation.words:
        assert sum(word.attention) == pytest.approx(1.0, abs=1e-5)
        assert len(word.attention) == len(explanation.source) == 8
        assert [gate.gate for gate in word.sememes] == sorted((gate.gate for gate in word.sememes), reverse=True)
        assert len(word.sememes) == len(word.raised) == 5
        assert len(word.expected) >= 1
        rises = [item.rise or 0 for item in word.expected]
        assert rises == sorted(rises, reverse=True)
        risen = [gate.gate - gate.at_rest for gate in word.raised]
        assert risen == sorted(risen, reverse=True)
        assert sum(sense.share for sense in word.senses) == pytest.approx(1.0, abs=1e-5)
    assert explanation.mean == "over the word counts of train, without context"
    over = explain_writing(headlines, LINES[0], mean="valid")
    assert over.mean == "over the 45 predictions of valid"
    assert over.words[0].expected != explanation.words[0].expected
    html = text_page(explanation)
    page = check_page(html)
    assert page.marks == 2 * 8
    assert page.charts[0].startswith("Weights of the attention")
    word = explanation.words[0]
    assert f"{word.word} → {explanation.source[0]}: {word.attention[0]:.2f}" in page.text
    opened.clear()
    result = runner.invoke(
        app, ["explain", str(headlines), LINES[0], "--html", str(tmp_path / "why.html"), "--figure", str(tmp_path / "why.svg")]
    )
    assert opened == [headlines]
    assert explanation.source[0] in (tmp_path / "why.svg").read_text(encoding="utf-8")
    assert (result.exit_code, "largest gates" in result.stdout) == (0, True)
    assert (tmp_path / "why.html").read_text(encoding="utf-8") == html


@pytest.mark.parametrize("decoder", ["sdlm", "mos_sdlm"])
def test_explain_with_an_overlay_reads_the_text_as_trained_with_both(
    headlines: Path, pairs: PairPlace, tmp_path: Path, decoder: str
) -> None:
    """Two runs, opened one after the other, give the same probabilities and ranks."""
    run = headlines if decoder == "sdlm" else tmp_path / "run"
    if decoder != "sdlm":
        train(pairs.table(decoder, schedule__epochs=1), run)
    overlay = tmp_path / "overlay.txt"
    overlay.write_text(f"{HEADER}\n梨\t+电脑\n电脑\t-机器\n", encoding="utf-8")
    found = explain_writing(run, LINES[0], overlay=overlay)
    assert isinstance(found, OverlayWriting)
    assert found.before == explain_writing(run, LINES[0])
    after = explain_writing(Run.open(run, overlay=overlay, device="cpu"), LINES[0])
    assert (found.words, found.nats, found.run) == (after.words, after.nats, f"{run} with {overlay}")
    assert [(one.word, one.sense) for one in found.changes] == [("梨", 1), ("电脑", 1)]
    written = [word.word for word in found.before.words]
    assert [one.word for one in found.text] == written
    assert [one.probability_before for one in found.text] == pytest.approx([word.probability for word in found.before.words])
    sides = []
    for opened in (Run.open(run, device="cpu"), Run.open(run, overlay=overlay, device="cpu")):
        ids = opened.vocabulary.encode(word.read_as for word in found.before.words).tolist()
        with torch.no_grad():
            reread = opened.task.teacher_forced(opened.vocabulary.encode(found.source), ids)  # type: ignore[attr-defined]
            sides.append(opened.task.decoder.log_probs(reread.contexts).double())  # type: ignore[attr-defined]
    after_text = [float(sides[1][pairs, word].exp()) for pairs, word in enumerate(ids)]
    assert [one.probability_after for one in found.text] == pytest.approx(after_text, rel=1e-4)
    assert {(one.place, one.written, one.word) for one in found.changed_words} == {
        (pairs, word, name) for pairs, word in enumerate(written, start=1) for name in ("梨", "电脑")
    }
    for one in found.changed_words:
        number = opened.vocabulary.id(one.word)
        for side, probability, rank in zip(
            sides, (one.probability_before, one.probability_after), (one.rank_before, one.rank_after), strict=True
        ):
            assert probability == pytest.approx(float(side[one.place - 1, number].exp()), rel=1e-4)
            assert side[one.place - 1].sort(descending=True).indices.tolist().index(number) == rank - 1
    moved = [abs(one.probability_after - one.probability_before) for one in found.changed_words]
    assert moved == sorted(moved, reverse=True)
    assert moved[0] > 0
    arguments = ["explain", str(run), LINES[0], "--overlay", str(overlay), "--html", str(tmp_path / "why.html")]
    shown = runner.invoke(app, arguments)
    assert shown.exit_code == 0, shown.stderr
    page = check_page((tmp_path / "why.html").read_text(encoding="utf-8")).text
    for text in (" ".join(written), "Its words", "Changed words in their places", "rank with overlay"):
        assert text in shown.stdout
        assert text in " ".join(page.split())
    assert OverlayWriting.model_validate_json(runner.invoke(app, [*arguments, "--json"]).stdout) == found


def test_an_output_layer_without_senses_says_so(pairs: PairPlace, tmp_path: Path) -> None:
    train(pairs.table(schedule__epochs=1), tmp_path / "run")
    explanation = explain_writing(tmp_path / "run", "火星 吃 <b>梨</b>")
    assert explanation.no_senses == "the output layer 'softmax' knows of no senses or sememes"
    assert explanation.unknown == ("火星", "<b>梨</b>")
    check_page(text_page(explanation))


def test_ranks_of_many_words_make_no_table_of_all_words_for_each() -> None:
    class Sizes(TorchDispatchMode):
        largest = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            found = func(*args, **(kwargs or {}))
            sizes = [one.numel() for one in (found if isinstance(found, tuple) else (found,)) if isinstance(one, torch.Tensor)]
            self.largest = max(self.largest, *sizes, 0)
            return found

    values = torch.tensor([[0.1, 0.4, 0.4, 0.1], [0.3, 0.2, 0.1, 0.4]])
    assert ranks_among(values, values).tolist() == [[3, 1, 1, 3], [2, 3, 4, 1]]
    log_probs_PV, sizes = torch.rand(2, 300), Sizes()
    with sizes:
        ranks_among(log_probs_PV, log_probs_PV[:, :200])
    assert sizes.largest == log_probs_PV.numel()
