"""score and generate: nats of given words, and words by their probability."""

from __future__ import annotations

import json
import math
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from sememekit.analysis import score as score_module
from sememekit.analysis.evaluate_ppl import evaluate_ppl
from sememekit.analysis.score import ScoredToken, score
from sememekit.analysis.senses.tagging import tag
from sememekit.commands._program import app
from sememekit.errors import ConfigError, DataError
from sememekit.files import RunWarning
from sememekit.jobs.preprocess import preprocess
from sememekit.jobs.train import train
from sememekit.prepare.settings import PreprocessSettings
from sememekit.runs.generation import generate
from sememekit.text.form import TextForm
from sememekit.text.segmenters import WhiteSpace
from sememekit.text.vocabulary import Vocabulary
from tests.pair_files import lcsts_part
from tests.small_pairs import PairPlace
from tests.small_run import Place


def rows(run: Path, lines: list[str], **options: object) -> list[ScoredToken]:
    return list(score(run, lines, **options))


def nats(found: list[ScoredToken]) -> list[float]:
    return [row.nats for row in found if row.nats is not None]


def test_words_are_numbered_and_read_as_the_model_knows_them(place: Place, tmp_path: Path) -> None:
    narrow = Place(tmp_path / "narrow", max_vocabulary=6)
    train(narrow.table(schedule__epochs=1), tmp_path / "run")
    found = rows(tmp_path / "run", ["我 吃 海豚 。\n", "\n", "  人　买\t苹果 。\r\n"])
    assert [(row.sentence, row.position, row.token) for row in found] == [
        (1, 1, "我"), (1, 2, "吃"), (1, 3, "海豚"), (1, 4, "。"),
        (3, 1, "人"), (3, 2, "买"), (3, 3, "苹果"), (3, 4, "。"),
    ]  # fmt: skip
    assert [row.read_as for row in found if row.token == "海豚"] == ["<unk>"]
    assert [row.nats is None for row in found] == [True, False, False, False] * 2


def test_lines_without_blanks_are_told(place: Place, tmp_path: Path) -> None:
    narrow = Place(tmp_path / "narrow", max_vocabulary=6)
    train(narrow.table(schedule__epochs=1), tmp_path / "run")
    for text, told in (
        ("我 吃 海豚 。\n", False),
        ("我吃海豚买苹果。\n", True),
        ("我 吃 。\n" * 9 + "我吃海豚买苹果。\n", True),
    ):
        (tmp_path / "lines.txt").write_text(text, encoding="utf-8")
        found = CliRunner().invoke(app, ["score", str(tmp_path / "run"), str(tmp_path / "lines.txt"), "--device", "cpu"])
        refused = told and text.count("\n") == 1
        assert found.exit_code == int(refused)
        assert (found.stdout == "") is refused, "no figure of a text that was not read"
        if refused:
            assert "lines.txt: Chinese without blanks, such as '我吃海豚买苹果', which" in found.stderr
            assert "; cut it first: sememekit segment" in found.stderr
            cut = CliRunner().invoke(app, ["segment", str(tmp_path / "lines.txt")])
            again = CliRunner().invoke(app, ["score", str(tmp_path / "run"), "--device", "cpu"], input=cut.stdout)
            assert again.exit_code == 0, again.stderr
            continue
        assert ("'我吃海豚买苹果'; cut the lines with: sememekit segment FILE" in found.stderr) is told
        written = CliRunner().invoke(app, ["generate", str(tmp_path / "run"), text.strip(), "--device", "cpu"])
        assert written.exit_code == 0
        assert ("such as '我吃海豚买苹果'; cut it first: sememekit segment" in written.stderr) is told


def test_what_a_segmenter_left_whole_is_not_told_to_be_cut() -> None:
    """A warning would be an error here."""
    run: Any = SimpleNamespace(
        vocabulary=Vocabulary.from_counts({"<unk>": 1, "我": 2}), signature=SimpleNamespace(segmenter=WhiteSpace.description)
    )
    for segmenter in (WhiteSpace(), None):
        read = score_module._read(["我吃海豚买苹果"], run, TextForm(), segmenter, None, "line")
        with nullcontext() if segmenter else pytest.warns(RunWarning, match="Chinese without blanks"):
            assert [line.tokens for line in read] == [["我吃海豚买苹果"]]


def test_a_word_that_a_closed_vocabulary_lacks_is_an_error_with_its_line() -> None:
    run: Any = SimpleNamespace(
        vocabulary=Vocabulary.from_counts({"我": 2, "人": 1}), signature=SimpleNamespace(segmenter=WhiteSpace.description)
    )
    with pytest.raises(DataError, match=r"line 2: the word '海豚'"):
        list(score_module._read(["我", "海豚"], run, TextForm(), None, None, "line"))


@pytest.mark.parametrize("fixture", ["sdlm", "ending"])
def test_lines_are_independent_whatever_stands_beside_them(fixture: str, request: pytest.FixtureRequest) -> None:
    run = request.getfixturevalue(fixture)
    lines = ["我 吃 苹果 。", "人", "我 买 电脑 。 我 吃 梨 。 人 买 苹果 。", "", "人 吃 梨 。"] * 17
    together = rows(run, lines)
    for number in (1, 2, 3, 5, 85):
        alone = rows(run, [lines[number - 1]])
        assert nats([row for row in together if row.sentence == number]) == pytest.approx(nats(alone), abs=1e-5)


def test_thirty_two_lines_are_read_before_the_first_row(sdlm: Path) -> None:
    for read_rows in (score, tag):
        lines = iter(["我 吃 梨 。"] * 100)
        first = next(iter(read_rows(sdlm, lines)))
        assert (first.sentence, first.token) == (1, "我")
        assert len([*lines]) == 68, read_rows.__name__


def test_a_long_line_is_read_in_pieces(sdlm: Path, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [" ".join(place.data.vocabulary.decode(place.data.tokens("test")[:length])) for length in (50, 3, 37, 21, 20, 1)]
    whole, carried = rows(sdlm, lines), rows(sdlm, lines, carry=True)
    monkeypatch.setattr("sememekit.runs.stream_nats._ROWS_AT_ONCE", 7)
    assert nats(rows(sdlm, lines)) == pytest.approx(nats(whole), abs=1e-5)
    assert nats(rows(sdlm, lines, carry=True)) == pytest.approx(nats(carried), abs=1e-5)


def test_carried_lines_add_up_to_the_perplexity_of_the_text(sdlm: Path, place: Place) -> None:
    lines = (place.text / "test.txt").read_text(encoding="utf-8").splitlines()
    found = rows(sdlm, lines, carry=True)
    report = evaluate_ppl(sdlm, batch_size=1, device="cpu")
    assert [row.nats is None for row in found] == [True] + [False] * report.tokens
    assert sum(nats(found)) == pytest.approx(report.nats, rel=1e-6)


def test_sentences_begin_and_end_with_their_mark(ending: Path, sentences: Place) -> None:
    found = rows(ending, ["我 吃 苹果 。"])
    assert [row.token for row in found] == ["我", "吃", "苹果", "。", "<eos>"]
    assert all(row.nats is not None for row in found), "the first word is predicted from <eos>"
    given = rows(ending, ["我 吃 苹果 。 <eos>"])
    assert given == found, "a mark that stands there is not doubled"
    lines = (sentences.text / "test.txt").read_text(encoding="utf-8").splitlines()
    carried = rows(ending, lines, carry=True)
    report = evaluate_ppl(ending, batch_size=1, device="cpu")
    assert [row.nats is None for row in carried] == [True] + [False] * report.tokens, "nothing stands before a text"
    assert sum(nats(carried)) == pytest.approx(report.nats, rel=1e-6)
    apart = rows(ending, lines[:3])
    assert [row.nats for row in apart][5:10] != pytest.approx([row.nats for row in carried][5:10], abs=1e-5)


def test_text_is_cut_as_the_data_were(place: Place, tmp_path: Path) -> None:
    text = tmp_path / "raw"
    text.mkdir()
    for split in ("train", "valid", "test"):
        source = (place.text / f"{split}.txt").read_text(encoding="utf-8")
        (text / f"{split}.txt").write_text(source.replace(" ", ""), encoding="utf-8")
    for name, options in (("fmm", {"lexicon": "open"}), ("sentencepiece", {"pieces": 18})):
        data, run = tmp_path / f"{name}-data", tmp_path / f"{name}-run"
        preprocess("plain", text, data, PreprocessSettings(segmenter=name, min_count=1, end_of_sentence=False, **options))
        table = place.table(schedule__epochs=1)
        train({**table, "data": {"path": str(data)}}, run)
        if name == "sentencepiece":
            data.rename(tmp_path / "gone")
        found = rows(run, ["我吃苹果。", "人买电脑。"], segment=True)
        assert "".join(row.token for row in found if row.sentence == 1).replace("▁", "") == "我吃苹果。"
        assert len(found) > 2


def test_white_space_is_the_segmenter_of_segmented_data(sdlm: Path) -> None:
    assert rows(sdlm, ["我 吃 梨 。"], segment=True) == rows(sdlm, ["我 吃 梨 。"])


def test_no_lines_give_no_rows(sdlm: Path) -> None:
    for carry in (False, True):
        assert rows(sdlm, [], carry=carry) == []
        assert rows(sdlm, ["", "  "], carry=carry) == []
        assert nats(rows(sdlm, ["我"], carry=carry)) == []


def test_the_same_seed_gives_the_same_words(sdlm: Path) -> None:
    one, two = (generate(sdlm, "我", num_tokens=12, seed=7) for _ in range(2))
    assert one == two
    assert len(one.tokens) == 12
    assert one.prompt == ("我",)
    assert one.text == " ".join(["我", *one.tokens])
    assert any(generate(sdlm, "我", num_tokens=12, seed=seed).tokens != one.tokens for seed in (8, 9, 10))


def test_generated_words_have_the_nats_that_score_gives_them(sdlm: Path) -> None:
    report = generate(sdlm, "我 吃", num_tokens=9, temperature=0.7, top_k=3, seed=2)
    scored = rows(sdlm, [report.text])[2:]
    assert [row.token for row in scored] == list(report.tokens)
    assert sum(nats(scored)) == pytest.approx(report.nats, abs=1e-4)


def test_a_prompt_begins_a_sentence(ending: Path) -> None:
    """A model of sentences reads ``<eos>`` before the prompt, as ``score`` does before a line."""
    report = generate(ending, "我", num_tokens=1, temperature=0.0)
    (row,) = rows(ending, [f"我 {report.tokens[0]}"])[1:2]
    assert report.tokens[0] != "<eos>"
    assert row.nats == pytest.approx(report.nats, abs=1e-5)


def test_temperature_zero_takes_the_likeliest_word(sdlm: Path) -> None:
    greedy = generate(sdlm, "我", num_tokens=8, temperature=0.0, seed=1)
    assert greedy.tokens == generate(sdlm, "我", num_tokens=8, temperature=0.0, seed=2).tokens
    assert greedy.tokens == generate(sdlm, "我", num_tokens=8, top_k=1, seed=3).tokens
    assert greedy.tokens == generate(sdlm, "我", num_tokens=8, temperature=1e-9, seed=3).tokens


def test_the_top_share_of_probability_and_words_that_stop(sdlm: Path) -> None:
    greedy = generate(sdlm, "我", num_tokens=8, temperature=0.0)
    assert generate(sdlm, "我", num_tokens=8, top_p=1e-6, seed=3).tokens == greedy.tokens
    assert generate(sdlm, "我", num_tokens=8, top_p=1.0, seed=3) == generate(sdlm, "我", num_tokens=8, seed=3)
    last = greedy.tokens[3]
    stopped = generate(sdlm, "我", num_tokens=8, temperature=0.0, stop=[last]).tokens
    assert stopped == greedy.tokens[: greedy.tokens.index(last) + 1]
    with pytest.raises(ConfigError, match="'top_p': input should be greater than 0"):
        generate(sdlm, "我", top_p=0.0)
    for beam in (None, 2):  # a word that never comes stops nothing
        with pytest.raises(ConfigError, match="--stop 海豚: the model does not know this word"):
            generate(sdlm, "我", stop=["海豚"], beam=beam)


def test_a_beam_finds_a_text_at_least_as_probable_as_greedy_choice(sdlm: Path, ending: Path) -> None:
    greedy = generate(sdlm, "我", num_tokens=6, temperature=0.0)
    assert generate(sdlm, "我", num_tokens=6, beam=1).tokens == greedy.tokens
    best = generate(sdlm, "我", num_tokens=6, beam=8)
    assert len(best.tokens) == 6
    assert best.nats <= greedy.nats + 1e-6
    scored = rows(sdlm, [best.text])[1:]
    assert sum(nats(scored)) == pytest.approx(best.nats, abs=1e-4)
    assert generate(ending, "我", num_tokens=40, beam=3).tokens.count("<eos>") <= 1
    with pytest.raises(ConfigError, match="needs a prompt"):
        generate(sdlm, beam=2)
    for option in ({"top_p": 0.5}, {"top_k": 3}, {"temperature": 0.0}):
        with pytest.raises(ConfigError, match=f"{next(iter(option))}: a beam draws nothing"):
            generate(sdlm, "我", beam=2, **option)


def test_prompts_of_standard_input_and_several_samples(sdlm: Path) -> None:
    run = ["generate", str(sdlm), "--num-tokens", "4", "--num-samples", "2", "--seed", "5"]
    shown = CliRunner().invoke(app, run, input="我\n我 吃\n").stdout.splitlines()
    assert shown == [generate(sdlm, text, num_tokens=4, seed=seed).text for text in ("我", "我 吃") for seed in (5, 6)]
    assert CliRunner().invoke(app, [*run, "我"]).stdout.splitlines() == shown[:2]
    for option in ("--top-p=0.5", "--num-samples=2"):
        refused = CliRunner().invoke(app, ["generate", str(sdlm), "我", "--beam", "2", option])
        assert (refused.exit_code, f"{option.split('=')[0]}: a beam draws nothing" in refused.stderr) == (1, True)


def test_unknown_words_are_drawn_only_when_allowed(tmp_path: Path) -> None:
    narrow = Place(tmp_path / "narrow", max_vocabulary=4)
    train(narrow.table(schedule__epochs=1), tmp_path / "run")
    for seed in range(4):
        assert "<unk>" not in generate(tmp_path / "run", "我", num_tokens=40, seed=seed).tokens
    assert "<unk>" in generate(tmp_path / "run", "我", num_tokens=40, unknown=True).tokens
    with pytest.warns(RunWarning, match="does not know, read as <unk>: 海豚"):
        assert generate(tmp_path / "run", "海豚 <unk>", num_tokens=1).prompt == ("<unk>", "<unk>")


def test_nothing_to_begin_with(sdlm: Path, ending: Path) -> None:
    for seed in range(3):
        assert len(generate(sdlm, num_tokens=1, seed=seed).tokens) == 1
        report = generate(sdlm, num_tokens=6, seed=seed)
        assert (report.prompt, len(report.tokens)) == ((), 6)
        assert math.isfinite(report.nats)
    report = generate(ending, num_tokens=60)
    assert len(report.tokens) == 60
    assert report.text.count("\n") >= report.tokens.count("<eos>") - 1 > 0
    assert "<eos>" not in report.text
    assert json.loads(report.model_dump_json())["seed"] == 1


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        ({"num_tokens": 0}, "'num_tokens': input should be greater than or equal to 1, given 0"),
        ({"temperature": -1.0}, "'temperature': input should be greater than or equal to 0, given -1"),
        ({"temperature": math.nan}, "temperature"),
        ({"top_k": -1}, "top_k"),
    ],
)
def test_numbers_out_of_range_are_named(sdlm: Path, options: dict[str, float], pattern: str) -> None:
    with pytest.raises(ConfigError, match=pattern):
        generate(sdlm, "我", **options)


def test_pairs_are_cut_and_read_as_the_data_were(tmp_path: Path) -> None:
    """Full-width digits are the half-width ones that the model learned, and marks of the vocabulary stay whole."""
    folder = tmp_path / "lcsts"
    folder.mkdir()
    for name, own in (("PART_I", None), ("PART_II", "5"), ("PART_III", "4")):
        content = lcsts_part(*[(own, f"增长1{number}%", f"{name[5:]} 去年增长1{number}%。") for number in range(9)])
        (folder / f"{name}.txt").write_text(content, encoding="utf-8")
    preprocess("lcsts", folder, tmp_path / "data", PreprocessSettings(segmenter="characters"))
    train({**PairPlace(tmp_path).table(schedule__epochs=1), "data": {"path": str(tmp_path / "data")}}, tmp_path / "run")
    narrow, wide = (rows(tmp_path / "run", [line], segment=True) for line in ("增长12%\t去年12%", "增长１２％\t去年１２％"))
    assert narrow == wide
    assert [row.read_as for row in narrow] == [*"去年12%", "</s>"]
    (unknown,) = [row for row in rows(tmp_path / "run", ["增长\t去<unk>"], segment=True) if row.position == 2]
    assert unknown.token == unknown.read_as == "<unk>"


def test_targets_are_scored_given_their_source(tmp_path: Path) -> None:
    """The nats of all pairs add up to the nats of evaluate-ppl; the error for a line of another form has its number."""
    pairs = PairPlace(tmp_path)
    train(pairs.table(schedule__epochs=1), tmp_path / "run")
    examples, vocabulary = pairs.pairs.examples("test"), pairs.pairs.vocabulary
    texts = [[" ".join(vocabulary.decode(examples.text(number, side))) for side in (0, 1)] for number in range(len(examples))]
    found = rows(tmp_path / "run", [*(f"{source}\t{target}\n" for source, target in texts), "\n"])
    assert sum(nats(found)) == pytest.approx(evaluate_ppl(tmp_path / "run", device="cpu").nats, rel=1e-5)
    first = [row for row in found if row.sentence == 1]
    assert [row.token for row in first] == [*texts[0][1].split(), "</s>"]
    assert [row.position for row in first] == [*range(1, len(first) + 1)]
    for line in ("我 吃 苹果", "我\t吃\t苹果"):
        with pytest.raises(DataError, match=r"line 2: \d tabs, where a line is a source, one tab and a target.*generate"):
            rows(tmp_path / "run", ["我\t吃", line])
    with pytest.raises(DataError, match="line 1: the source is empty"):
        rows(tmp_path / "run", ["\t吃"])
    with pytest.raises(ConfigError, match="--carry"):
        rows(tmp_path / "run", ["我\t吃"], carry=True)
