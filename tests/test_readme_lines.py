# ruff: noqa: E501 (lines stand here as the pages have them)
"""Every shell line of the README and of the pages about jobs is run, in order, on small data of our own.

``RUN`` says for each line what stands for the names of people's own files in it, and what is added to keep it short. A new line
that is not in the table fails; so does an entry whose line is gone. ``NOT_RUN`` names the few that are left out, each with why.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.small_examples import write_pairs, write_reviews, write_vectors
from tests.test_readme import small_text

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "docs/clusters.md", "docs/lattices.md", "docs/pairs.md")
TINY = (
    "--set task.embedding_size=8 --set encoder.hidden_size=8 --set encoder.num_layers=1 --set schedule.epochs=1 "
    "--set run.stall_epochs=0 --set run.threads=1 --set optimizer.learning_rate=1.0"
)
NLI = f"{TINY} --set task.classifier_size=8 --set task.batch_size=8"
MOS = (
    f"{TINY} --set encoder.output_size=8 --set decoder.num_components=2 --set task.batch_size=4 "
    "--set task.evaluation_batch_size=4"
)
SEQ = f"{TINY} --set task.hidden_size=8 --set task.batch_size=8"

RUN: dict[str, str | tuple[str, str]] = {
    "sememekit doctor": "",
    "sememekit preprocess ptb PTB_FOLDER --out data/ptb": "",
    "sememekit preprocess snli SNLI_FOLDER --out data/snli": "",
    "sememekit preprocess plain NEWS_FOLDER --segmenter characters --chunks 10000 --chunk-length 3 --out data/news": "",
    "sememekit preprocess plain NEWS_FOLDER --segmenter characters --min-count 3 --chunks 20000 --chunk-length 4 --out data/news": (
        "data/news",
        "data/news-4",
    ),
    "sememekit segment --segmenter fmm --lexicon open < raw.txt > words.txt": "",
    "sememekit build-sememe-graph --source open --data data/pd --out pd.graph": "",
    "sememekit lookup 希望": "",
    "sememekit lookup --check": "",
    "sememekit train --decoder sdlm --data data/pd --graph pd.graph --out runs/sdlm --set schedule.epochs=10": TINY,
    "sememekit train --out runs/sdlm --resume": "--set schedule.epochs=2",
    "sememekit train --task nli --encoder bilstm --vectors glove.6B.300d.txt --data data/snli --out runs/nli": NLI,
    "sememekit evaluate-ppl runs/sdlm --by senses": "",
    "sememekit eval runs/nli": "",
    "sememekit predict runs/nli pairs.tsv": "",
    "sememekit evaluate-ppl runs/sdlm --cache --tune": "",
    'sememekit explain runs/sdlm "去年 美国 贸易" --html why.html': ("去年 美国 贸易", "北京 的 记者"),
    "sememekit score runs/sdlm words.txt > nats.tsv": "",
    "sememekit generate runs/sdlm 今天": "",
    "sememekit report runs/sdlm": "",
    'sememekit clusters runs/words --words "be iraq" --save words.json': ("be iraq", "北京 苹果"),
    "sememekit cluster-update runs/words --out runs/words-2": "",
    "sememekit clusters runs/words --top 136 --members 12": "",
    "sememekit attack runs/sst2 --data test.tsv --search genetic --candidates sememe --source table:english.tsv --out attacks/1": (
        "--set attack.limit=6 --set search.population=4 --set search.generations=2"
    ),
    "sememekit attack --out attacks/1 --resume": "",
    "sememekit attack --compare attacks/1 attacks/3 --html compare.html": "",
    "sememekit recipes list": "",
    "sememekit train --recipe mixture/ptb-mos --data data/ptb --out runs/mos": MOS,
    "sememekit train --from runs/mos --recipe mixture/finetune --out runs/mos-tuned": "--set schedule.epochs=1",
    "sememekit evaluate-ppl runs/mos --dynamic --dynamic-preset mos-ptb": "",
    "sememekit preprocess gigaword FOLDER --out data/giga": ("FOLDER", "GIGAWORD"),
    "sememekit preprocess peoples-daily --out data/pd": ("peoples-daily", "peoples-daily MONTH.txt"),
    "sememekit preprocess gigaword SUMDATA --out data/gigaword": ("SUMDATA", "GIGAWORD"),
    "sememekit train --decoder self_organized --data data/titles --out runs/titles": f"{TINY} --set decoder.update_every=5",
    "sememekit cluster-update runs/titles": "",
    "sememekit clusters runs/titles --save titles.json": "",
    "sememekit train --task headline --decoder self_organized --clusters titles.json --set decoder.start=file --set decoder.update_every=0 --data data/gigaword --out runs/headlines": SEQ,
    "sememekit train --recipe lattice/chinese-l3 --data data/news --out runs/lattice": f"{TINY} --set task.sub_size=6 --set task.batch_size=20",
    'sememekit explain runs/lattice "去年美国贸易" --html lattice.html': ("去年美国贸易", "北京的记者"),
    "sememekit segment news.txt --model RUN": ("news.txt --model RUN", "raw.txt --model runs/lattice"),
}
"""line -> what is added to it, or (what is in it, what stands for that)."""

_LATER = "wants data in a form that this test does not write yet; its flags are held by tests/test_readme.py"
NOT_RUN: dict[str, str] = {
    "sememekit quickstart": "six minutes; tests/commands/test_quickstart.py runs it on a toy month",
    "sememekit preprocess peoples-daily RELEASED_FOLDER --out data/released": _LATER,
    "sememekit preprocess peoples-daily-headlines --out data/headlines": _LATER,
    "sememekit preprocess duc duc2004.jsonl --vocabulary data/giga --out data/duc": _LATER,
    "sememekit baseline data/headlines": _LATER,
    "sememekit build-sememe-graph --source function-words --source dictionary:wordnet:DICT --lemmas wordnet:DICT --data data/ptb --out ptb.graph": _LATER,
    "sememekit train --task headline --encoder bilstm --decoder sdlm --data data/headlines --graph h.graph --out runs/headlines": _LATER,
    "sememekit analyze runs/softmax runs/mos --out analysis.html": _LATER,
    "sememekit eval runs/headlines --data data/duc --texts written.jsonl": _LATER,
    "sememekit compare one.jsonl other.jsonl --by gigaword": _LATER,
    "sememekit generate runs/headlines --input articles.txt --json": _LATER,
    'sememekit explain runs/headlines "ARTICLE" --html why.html': _LATER,
    "sememekit eval runs/lattice --segmentation gold.txt --lexicon open": _LATER,
    "sememekit attack runs/nli --data s1.test --recipe attack/released-nli --vectors vectors.txt --out attacks/2": _LATER,
    "sememekit train --task nli --data data/snli --augment attacks/2/examples.jsonl --out runs/nli-2": _LATER,
    "sememekit preprocess peoples-daily RELEASED_FOLDER --out data/pd": _LATER,
    "sememekit build-sememe-graph --source hownet2000:glossary.dat --source list:hownet.txt --data data/pd --out pd.graph": _LATER,
    "sememekit train --recipe sdlm/tied-medium-sdlm --data data/pd --graph pd.graph --out runs/medium": _LATER,
    "sememekit evaluate-ppl runs/medium": _LATER,
    "sememekit preprocess plain TITLES --segmenter none --vocabulary data/gigaword --out data/titles": _LATER,
    "sememekit build-sememe-graph --source table:ENGLISH_TABLE --lemmas LEMMAS --data data/ptb --out ptb.graph": _LATER,
    "sememekit train --encoder lstm --set encoder.injection=cell --decoder sdlm --data data/ptb --graph ptb.graph --out runs/both": _LATER,
    "sememekit train --recipe ours/sxu-characters-segmental --data data/news --out runs/words": _LATER,
    "sememekit evaluate-ppl runs/words": _LATER,
    "sememekit segment raw.txt --model runs/words > words.txt": _LATER,
    "sememekit eval runs/words --segmentation GOLD.txt --words TRAIN.txt --lexicon open": _LATER,
    'sememekit explain runs/words "上海市体育局召开会议" --html lattice.html': _LATER,
    'sememekit explain runs/two "打 发" --embeddings --split valid': _LATER,
    "sememekit preprocess gigaword FOLDER --test gigaword.jsonl --out data/giga": _LATER,
    "sememekit preprocess lcsts FOLDER --lexicon hownet:HowNet.txt --out data/lcsts": _LATER,
    "sememekit preprocess switchboard FOLDER --turns 3 --out data/switchboard": _LATER,
    "sememekit preprocess duc duc2004.jsonl --vocabulary runs/giga --out data/duc": _LATER,
    "sememekit preprocess lcsts PART_III.txt --vocabulary runs/headlines --lexicon hownet2000:glossary.dat --out data/lcsts-unseen": _LATER,
    "sememekit eval runs/headlines --data data/lcsts-unseen": _LATER,
}


def lines_of(page: str) -> list[str]:
    """The command lines of the shell blocks of a page, without comments; the README's script has a test of its own."""
    text = (ROOT / page).read_text(encoding="utf-8")
    text = re.sub(r"<!-- chain:.*?-->\n```sh\n.*?```", "", text, flags=re.DOTALL)
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [re.split(r"\s+#", line)[0].strip() for line in lines if line.startswith("sememekit ")]


ALL = list(dict.fromkeys(line for page in PAGES for line in lines_of(page)))


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all that the lines speak of."""
    folder = tmp_path_factory.mktemp("readme")
    news = small_text().splitlines()[:300]
    for name, prefix in (("PTB_FOLDER", "ptb."), ("NEWS_FOLDER", ""), ("text", "")):
        (folder / name).mkdir()
        for split, part in (("train", news[:240]), ("valid", news[240:270]), ("test", news[270:])):
            spaced = [line.replace(" ", "") if name == "NEWS_FOLDER" else line for line in part]
            (folder / name / f"{prefix}{split}.txt").write_text("\n".join(spaced) + "\n", encoding="utf-8")
    (folder / "raw.txt").write_text("".join(line.replace(" ", "") + "\n" for line in news[:20]), encoding="utf-8")
    write_pairs(folder / "SNLI_FOLDER")
    (folder / "pairs.tsv").write_text("a man sleeps.\tthe girl runs.\ntwo dogs run.\ta man sleeps.\n", encoding="utf-8")
    write_vectors(folder / "glove.6B.300d.txt", ["a", "man", "the", "girl", "sleeps"], size=300)
    write_reviews(folder / "sst2")
    (folder / "test.tsv").write_text((folder / "sst2" / "test.tsv").read_text(encoding="utf-8"), encoding="utf-8")
    rows = [("fine", "good"), ("bore", "dull"), ("bad", "good"), ("film", "thing"), ("nice", "good")]
    (folder / "english.tsv").write_text("".join(f"{word}\t{sememe}\n" for word, sememe in rows), encoding="utf-8")
    month = "".join(f"1998{day:04}/m  {' '.join(f'{word}/n' for word in line.split())}\n" for day, line in enumerate(news))
    (folder / "MONTH.txt").write_text(month, encoding="utf-8")
    (folder / "GIGAWORD").mkdir()
    for split in ("train", "valid", "test"):
        articles = [f"the man {verb} in the park today and the girl {verb} too ." for verb in ("sleeps", "runs", "eats") * 8]
        titles = [" ".join(article.split()[1:5]) for article in articles]
        (folder / "GIGAWORD" / f"{split}.article.txt").write_text("\n".join(articles) + "\n", encoding="utf-8")
        (folder / "GIGAWORD" / f"{split}.title.txt").write_text("\n".join(titles) + "\n", encoding="utf-8")
    run(folder, "sememekit preprocess plain text --segmenter none --out data/words")
    run(
        folder,
        f"sememekit train --data data/words --decoder self_organized --set decoder.update_every=9 --out runs/words {TINY}",
    )
    run(folder, "sememekit preprocess sst2 sst2 --out data/sst2")
    run(folder, f"sememekit train --task classification --encoder lstm --data data/sst2 --out runs/sst2 {NLI}")
    attack = "sememekit attack runs/sst2 --data test.tsv --search random --candidates sememe --source table:english.tsv"
    run(folder, f"{attack} --set attack.limit=6 --set search.draws=3 --out attacks/3")
    return folder


def run(folder: Path, line: str) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, f"{line}\n{done.stderr[-1500:]}"
    return done.stdout


def test_every_line_is_run_or_has_a_reason() -> None:
    assert len(ALL) > 60
    assert set(RUN) | set(NOT_RUN) == set(ALL), sorted(set(ALL) ^ (set(RUN) | set(NOT_RUN)))
    assert not set(RUN) & set(NOT_RUN)
    assert all(NOT_RUN.values())


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_lines_run_in_the_order_of_the_pages(work: Path) -> None:
    failed = []
    for line in ALL:
        if line in NOT_RUN:
            continue
        change = RUN[line]
        command, _, _rest = line.partition(" <" if " <" in line else " >")
        tail = line[len(command) :]
        if isinstance(change, tuple):
            assert change[0] in command, f"{change[0]!r} is not in {line!r}"
            command = command.replace(*change)
        else:
            command = f"{command} {change}"
        try:
            run(work, command + tail)
        except AssertionError as error:
            failed.append(str(error))
    assert not failed, "\n\n".join(failed)
