"""Every ``sememekit`` line of the README and of the pages in docs/ is run, in order, on small data of our own.

A line is run as it is printed. Where it speaks of sizes or files that would take hours, ``ADAPTED`` says what stands for them;
the command and its flags stay. Records of runs (docs/results) are not covered.
"""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sememekit.commands._program import app
from tests.commands.processes import play_processes
from tests.readme_files import write_files
from tests.served import play_server
from tests.tiny_models import write_classifier, write_gpt2, write_masked

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("docs", "docs/tutorials", "docs/papers")
PAGES = ("README.md", *sorted(f"{folder}/{path.name}" for folder in FOLDERS for path in (ROOT / folder).glob("*.md")))

SHORT = "--set schedule.epochs=1 --set run.stall_epochs=0 --set run.threads=1"
SMALL = f"{SHORT} --set task.embedding_size=8 --set encoder.hidden_size=8 --set encoder.num_layers=1 --set task.batch_size=8"
RATE = "--set optimizer.learning_rate=1.0"
ADAM = "--set optimizer.name=adam --set optimizer.learning_rate=0.01"
LABELS = f"{SHORT} --set encoder.hidden_size=8 --set task.classifier_size=8 --set task.batch_size=8 {ADAM}"
LATTICE = f"{SMALL} --set task.sub_size=6 --set task.evaluation_batch_size=10 --set optimizer.learning_rate=0.01"
PAIRS = f"{SMALL} --set task.hidden_size=8 {ADAM}"
MIXTURE = f"{SMALL} {RATE} --set encoder.output_size=8 --set decoder.num_components=2 --set task.evaluation_batch_size=4"
GPT = f"{SHORT} --set encoder.context=48 --set encoder.overlap=16 --set task.chunk_length=40"
CLUSTERS = f"{SMALL} {RATE} --set decoder.update_every=9"


@dataclass(frozen=True)
class Adapted:
    """The changes to a line when it is run here.

    Attributes:
        more: added at its end.
        put: what stands for words in it.
        before: commands that make what the page takes for granted.
    """

    more: str = ""
    put: dict[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()


ADAPTED: dict[tuple[str, str], Adapted] = {
    ("README.md", "sememekit quickstart"): Adapted(f"--share 0.005 {SMALL} {ADAM}"),
    ("README.md", "sememekit quickstart --text"): Adapted(f"{SMALL} {ADAM}", put={"novel.txt": "NEWS_FOLDER/train.txt"}),
    ("README.md", "sememekit train --decoder sdlm"): Adapted(f"{SMALL} {RATE}"),
    ("docs/attacks.md", "sememekit train --task classification"): Adapted(LABELS),
    ("docs/attacks.md", "sememekit attack runs/sst2 --data test.tsv --search genetic"): Adapted(
        "--constraints loose --set attack.limit=6 --set search.population=4 --set search.generations=2"
    ),
    ("docs/attacks.md", "sememekit attack runs/sst2 --data test.tsv --search greedy"): Adapted(
        "--constraints loose --set attack.limit=6"
    ),
    ("docs/attacks.md", "sememekit attack mine:predict"): Adapted("--constraints loose", put={"test.tsv": "named.tsv"}),
    ("docs/attacks.md", "sememekit attack RUN --data test.tsv --candidates embedding"): Adapted(put={"RUN": "runs/sst2"}),
    ("docs/attacks.md", "sememekit attack RUN --data test.tsv --source"): Adapted(
        "--constraints loose", put={"RUN": "runs/sst2", "/usr/share/wordnet": "DICT"}
    ),
    ("docs/attacks.md", "sememekit attack RUN --data test.tsv --source table:en.tsv --vectors"): Adapted(
        "--constraints loose", put={"RUN": "runs/sst2"}
    ),
    ("docs/attacks.md", "sememekit attack RUN --data test.tsv --source table:en.tsv --lm"): Adapted(
        "--constraints loose --set constraints.perplexity.most=100",
        put={"RUN": "runs/sst2"},
        before=(
            "sememekit preprocess plain text --segmenter none --out data/words",
            f"sememekit train --data data/words --out LM {SMALL} {RATE}",
        ),
    ),
    ("docs/attacks.md", "sememekit train --task nli --encoder"): Adapted(f"{LABELS} --set schedule.epochs=6"),
    ("docs/attacks.md", "sememekit attack runs/nli"): Adapted(
        "--set attack.limit=15 --set search.population=6 --set search.generations=3"
    ),
    ("docs/attacks.md", "sememekit train --task nli --data data/snli --augment"): Adapted(
        f"{LABELS} --set task.embedding_size=8"
    ),
    ("docs/classification.md", "sememekit train"): Adapted(f"{LABELS} --set schedule.epochs=6"),
    ("docs/classification.md", "sememekit compare"): Adapted(
        before=(f"sememekit train --task nli --encoder lstm --data data/snli --out runs/cell {LABELS}",)
    ),
    ("docs/classification.md", "sememekit explain"): Adapted(
        put={"PREMISE": "a man is in the park", "HYPOTHESIS": "the man is eating in the park"}
    ),
    ("docs/clusters.md", "sememekit train"): Adapted(CLUSTERS),
    ("docs/clusters.md", "sememekit clusters runs/words --words"): Adapted(put={"dog parks": "上海 工人"}),
    ("docs/data.md", "sememekit preprocess peoples-daily --out"): Adapted(put={"peoples-daily": "peoples-daily MONTH.txt"}),
    ("docs/perplexity.md", "sememekit preprocess classification"): Adapted(put={"texts.tsv": "sst2/train.tsv"}),
    ("docs/perplexity.md", "sememekit train --decoder softmax"): Adapted(f"{SMALL} {RATE}"),
    ("docs/evaluation.md", "sememekit generate runs/sdlm the"): Adapted(put={"the": "The"}),
    ("docs/evaluation.md", "sememekit train --decoder sdlm"): Adapted(f"{SMALL} {RATE}"),
    ("docs/evaluation.md", "sememekit train --recipe mixture/ptb-mos"): Adapted(MIXTURE),
    ("docs/explaining.md", "sememekit train --decoder sdlm"): Adapted(f"{SMALL} {RATE}"),
    ("docs/explaining.md", "sememekit train --decoder softmax"): Adapted(f"{SMALL} {RATE}"),
    ("docs/explaining.md", "sememekit train --task nli"): Adapted(f"{LABELS} --set task.embedding_size=8"),
    ("docs/explaining.md", "sememekit explain runs/nli"): Adapted(
        put={"PREMISE": "a man is in the park", "HYPOTHESIS": "the man is eating in the park"}
    ),
    ("docs/huggingface.md", "sememekit train --encoder hf:models/gpt2 --set decoder.bias=false"): Adapted(
        GPT, put={"=0.001": "=0.02"}
    ),
    ("docs/huggingface.md", "sememekit train --encoder hf:models/gpt2 --decoder"): Adapted(
        f"{GPT} --set optimizer.learning_rate=0.5"
    ),
    ("docs/huggingface.md", "sememekit attack hf:models/sentiment"): Adapted("--constraints loose --set attack.limit=6"),
    ("docs/huggingface.md", "sememekit attack hf:models/nli"): Adapted("--constraints loose", put={"s1.train": "s1.short"}),
    ("docs/growing-a-lexicon.md", "sememekit preprocess plain text --segmenter none --min-count"): Adapted(
        put={"--min-count 5": "--min-count 45"}
    ),
    ("docs/growing-a-lexicon.md", "sememekit train"): Adapted(f"{SMALL} {RATE}"),
    ("docs/headlines.md", "sememekit preprocess peoples-daily-headlines"): Adapted(put={"headlines ": "headlines MONTH.txt "}),
    ("docs/headlines.md", "sememekit train --task headline --encoder bilstm"): Adapted(PAIRS),
    ("docs/headlines.md", "sememekit explain runs/headlines"): Adapted(put={"ARTICLE": "今天北京的记者看苹果。"}),
    ("docs/headlines.md", "sememekit preprocess gigaword FOLDER"): Adapted(put={"FOLDER": "GIGAWORD"}),
    ("docs/headlines.md", "sememekit preprocess lcsts FOLDER"): Adapted(put={"FOLDER": "LCSTS"}),
    ("docs/headlines.md", "sememekit preprocess switchboard"): Adapted(put={"FOLDER": "SWITCHBOARD"}),
    ("docs/headlines.md", "sememekit preprocess duc"): Adapted(
        before=(f"sememekit train --task headline --data data/giga --out runs/giga {PAIRS}",)
    ),
    ("docs/headlines.md", "sememekit preprocess lcsts PART_III.txt"): Adapted(
        before=(f"sememekit train --task headline --data data/lcsts --out runs/lcsts {PAIRS}",),
    ),
    ("docs/headlines.md", "sememekit preprocess gigaword SUMDATA"): Adapted(put={"SUMDATA": "GIGAWORD"}),
    ("docs/headlines.md", "sememekit train --decoder self_organized"): Adapted(CLUSTERS),
    ("docs/headlines.md", "sememekit train --task headline --decoder self_organized"): Adapted(PAIRS),
    ("docs/lattices.md", "sememekit train --recipe ours/sxu-characters-segmental"): Adapted(LATTICE),
    ("docs/lattices.md", "sememekit train --recipe lattice/chinese-l3"): Adapted(LATTICE),
    ("docs/lattices.md", "sememekit explain runs/two"): Adapted(
        put={"打 发": "看 卖"},
        before=(
            f"sememekit train --task lattice --data data/news --out runs/two {LATTICE} "
            "--set task.copies=2 --set task.num_chunks=50",
        ),
    ),
    ("docs/lexicons.md", "sememekit preprocess peoples-daily --out"): Adapted(put={"peoples-daily": "peoples-daily MONTH.txt"}),
    ("docs/lexicons.md", "sememekit train --decoder sdlm"): Adapted(f"{SMALL} {RATE}"),
    ("docs/output-layers.md", "sememekit train"): Adapted(f"{SMALL} {RATE}"),
    ("docs/output-layers.md", "sememekit train --decoder adaptive"): Adapted(f"{SMALL} {RATE} --set decoder.cutoffs=[9]"),
    ("docs/output-layers.md", "sememekit train --decoder sdlm"): Adapted(
        f"{SMALL} {RATE}", put={"decoder.samples=1000": "decoder.samples=10"}
    ),
    ("docs/papers/encoders.md", "sememekit train"): Adapted(f"{SMALL} {RATE}"),
    ("docs/papers/lattice.md", "sememekit train"): Adapted(LATTICE),
    ("docs/papers/mixtures.md", "sememekit train --recipe mixture/ptb-mos"): Adapted(MIXTURE),
    ("docs/papers/mixtures.md", "sememekit train --from runs/mos"): Adapted(MIXTURE),
    ("docs/papers/sdlm.md", "sememekit train"): Adapted(f"{SMALL} {RATE}"),
    ("docs/papers/self-organized.md", "sememekit train"): Adapted(CLUSTERS),
    ("docs/papers/sememe-rnn.md", "sememekit train"): Adapted(f"{SMALL} {RATE}"),
    ("docs/python.md", "sememekit train --decoder sdlm"): Adapted(f"{SMALL} {RATE}"),
    ("docs/python.md", "sememekit train --task nli"): Adapted(f"{LABELS} --set task.embedding_size=8"),
    ("docs/reproducing.md", "sememekit train"): Adapted(f"{SMALL} {RATE}"),
    ("docs/training.md", "sememekit train --decoder sdlm"): Adapted(f"{SMALL} {RATE}"),
    ("docs/training.md", "sememekit train --decoder sdlm --data data/own --graph own.graph --out runs/three"): Adapted(
        f"{SMALL} {RATE}", put={"--seeds 1,2,3": "--seeds 1,2"}
    ),
    ("docs/senses.md", "sememekit train"): Adapted(f"{SMALL} {RATE}"),
    ("docs/senses.md", "sememekit tag runs/sdlm text.txt"): Adapted(put={"text.txt": "text/test.txt"}),
    ("docs/senses.md", "sememekit tag runs/sdlm text.txt --words"): Adapted(
        put={"text.txt": "text/test.txt", "打,包袱": "今天,工人"}
    ),
    ("docs/senses.md", "sememekit eval"): Adapted(put={"GOLD": "senses.tsv"}),
    ("docs/senses.md", "sememekit tag hf:models/bert"): Adapted(
        put={"text.txt": "text/test.txt", "LEXICON": "open", "打,包袱": "看,报纸"}
    ),
    ("docs/senses.md", "sememekit eval hf:models/gpt2"): Adapted(
        put={"GOLD": "senses.tsv", "LEXICON": "open"},
        before=("sememekit preprocess plain text --segmenter hf:models/gpt2 --no-end-of-sentence --out data/pieces",),
    ),
    ("docs/senses.md", "sememekit explain"): Adapted(put={"他": "今天", "打": "看", "电话 给 我": "电影 。"}),
    **{
        (f"docs/tutorials/{page}.md", f"sememekit {beginning}"): change
        for page in ("raw-text", "raw-text-zh")
        for beginning, change in (
            ("preprocess plain", Adapted(put={"news.txt": "NEWS_FOLDER/train.txt"})),
            ("train --recipe", Adapted(f"{SMALL} --set decoder.samples=9")),
        )
    },
    ("docs/workbench.md", "sememekit serve"): Adapted(
        before=(
            "sememekit preprocess plain text --segmenter none --out data/own",
            "sememekit build-sememe-graph --source open --data data/own --out own.graph",
            f"sememekit train --decoder sdlm --data data/own --graph own.graph --out runs/sdlm {SMALL} {RATE}",
        )
    ),
    ("docs/training.md", "sememekit sweep"): Adapted(f"{SMALL} {RATE}", put={"--trials 8": "--trials 2"}),
    ("docs/training.md", "sememekit train --recipe mixture/ptb-mos"): Adapted(MIXTURE),
    ("docs/training.md", "sememekit train --from runs/mos"): Adapted(MIXTURE),
    ("docs/training.md", "sememekit train --encoder lstm"): Adapted(f"{SMALL} {RATE}"),
}
"""(page, beginning of a line) -> how it is run."""

SLOW = ("docs/lattices.md", "docs/papers/lattice.md", "docs/huggingface.md")
"""Pages whose lines are run with ``-m slow``."""

PYTHON, MODELS = "docs/python.md", "docs/huggingface.md"
"""The pages whose blocks of Python are run one after the other, after their lines; the second speaks of folders of models."""

TOUR = "sememekit quickstart"
"""The lines with a test of their own: they train in processes, one of them on part of a month."""


def lines_of(page: str) -> list[str]:
    """The command lines of the shell blocks of a page, without comments and without the script of docs/training.md."""
    text = (ROOT / page).read_text(encoding="utf-8")
    text = re.sub(r"<!-- chain:.*?-->\n```sh\n.*?```", "", text, flags=re.DOTALL)
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return list(dict.fromkeys(re.split(r"\s+#", line)[0].strip() for line in lines if line.startswith("sememekit ")))


WITH_LINES = [page for page in PAGES if lines_of(page)]


def adapted(page: str, line: str) -> Adapted:
    """Return the changes to a line, by the longest of its beginnings in ``ADAPTED``."""
    fitting = [key for key in ADAPTED if key[0] == page and line.startswith(key[1])]
    return ADAPTED[max(fitting, key=lambda key: len(key[1]))] if fitting else Adapted()


def as_run(line: str, change: Adapted) -> str:
    """The line with what stands for its words."""
    for old, new in change.put.items():
        assert old in line, f"{old!r} is not in {line!r}"
        line = line.replace(old, new, 1)
    return f"{line} {change.more}"


def run(line: str) -> None:
    """Run a line in the working folder as a shell would, without a shell; ``<`` and ``>`` are obeyed.

    Raises:
        AssertionError: it ends with anything but 0.
    """
    words, given, result = shlex.split(line)[1:], b"", None
    for mark in ("<", ">"):
        if mark in words:
            place = words.index(mark)
            name = words[place + 1]
            del words[place : place + 2]
            given, result = (Path(name).read_bytes(), result) if mark == "<" else (given, Path(name))
    done = CliRunner().invoke(app, words, input=given)
    assert done.exit_code == 0, f"{line}\nexit code {done.exit_code}\n{done.stderr[-1500:]}\n{done.exception!r}"
    if result is not None:
        assert done.stdout_bytes, f"{line}\nprinted nothing"
        result.write_bytes(done.stdout_bytes)


def test_every_entry_is_of_a_line_and_leaves_its_command_and_flags() -> None:
    """A page that gets a shell block is run from then on; an entry whose line is gone fails."""
    assert sum(len(lines_of(page)) for page in WITH_LINES) > 70
    used = {
        (page, key) for page in WITH_LINES for line in lines_of(page) for key in ADAPTED if adapted(page, line) is ADAPTED[key]
    }
    assert {key for _page, key in used} == set(ADAPTED), sorted(set(ADAPTED) - {key for _page, key in used})
    for page in WITH_LINES:
        for line in lines_of(page):
            printed, here = shlex.split(line), shlex.split(as_run(line, adapted(page, line)))
            flags = [word for word in printed if word.startswith("--")]
            assert here[:2] == printed[:2], line
            assert [word for word in here if word.startswith("--")][: len(flags)] == flags, line


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return tmp_path


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", [pytest.param(page, marks=pytest.mark.slow if page in SLOW else ()) for page in WITH_LINES])
def test_the_lines_of_a_page_run_in_their_order(page: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play_processes(monkeypatch)
    play_server(monkeypatch)
    if page in (MODELS, "docs/explaining.md", "docs/senses.md"):
        write_gpt2(place / "models" / "gpt2")
        write_masked(place / "models" / "bert")
        write_classifier(place / "models" / "sentiment", ("0", "1"))
        write_classifier(place / "models" / "nli", ("entailment", "neutral", "contradiction"))
    for block in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL):
        (place / block[0]).write_text(block[1], encoding="utf-8")
    failed = []
    for line in lines_of(page):
        change = adapted(page, line)
        if line.startswith(TOUR):
            continue
        try:
            for command in change.before:
                run(command)
            run(as_run(line, change))
        except AssertionError as error:
            failed.append(str(error))
    assert not failed, "\n\n".join(failed)
    monkeypatch.syspath_prepend(ROOT / "docs" / "examples")  # a file that the page says to copy
    if page in (PYTHON, MODELS, "docs/attacks.md"):
        names: dict[str, object] = {}
        for code in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL):
            exec(compile(code, page, "exec"), names)  # the page's own code
    if page == PYTHON:
        assert names["nats"] > 0
        assert names["probabilities"].shape == (1, 3)
        assert names["loss"] < math.log(len(names["words"])) + 1.0  # type: ignore[operator, arg-type]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_tours_of_the_readme(place: Path) -> None:
    tours = [line for line in lines_of("README.md") if line.startswith(TOUR)]
    for line in tours:
        run(as_run(line, adapted("README.md", line)))
    assert len(tours) == 2
    assert all((place / out / "report.html").is_file() for out in ("quickstart", "novel"))
