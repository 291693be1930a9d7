"""push and pull: what is passed on is the run, whole, and says what it is."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import safetensors.torch
import torch
from typer.testing import CliRunner

from sememekit.commands._program import app
from sememekit.errors import CheckpointError, ConfigError
from sememekit.jobs.cluster_update import cluster_update
from sememekit.jobs.train import train
from sememekit.reports.card import model_card
from sememekit.runs.run import Run, Which
from sememekit.runs.sharing import ShareReport, pull_run, push_run, without_folders
from sememekit.training.snapshots import step_of
from tests.faults.fitted import fit
from tests.small_run import Place


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("place"), end_of_sentence=True)


@pytest.fixture(scope="module")
def run(place: Place) -> Path:
    """A run with a graph, whose output layer shares its vectors with the embedding."""
    train(place.table("sdlm", run__seed=7), place.folder / "sdlm")
    return place.folder / "sdlm"


def push(run: Path, target: str, which: Which = "best", *, public: bool = False) -> ShareReport:
    return push_run(run, target, model_card(run, which=which), which=which, public=public)


def test_a_pushed_run_is_the_same_run_elsewhere(run: Path, place: Place, tmp_path: Path) -> None:
    report = push(run, str(tmp_path / "shared"))
    written = {path.name for path in (tmp_path / "shared").iterdir()}
    assert {"README.md", "model.safetensors", "plan.json", "vocabulary.tsv", "graph.json", "data.json"} <= written
    assert report.bytes == sum(path.stat().st_size for path in (tmp_path / "shared").iterdir() if path.name != "manifest.json")
    assert any("licence allows" in remark and "list:small" in remark for remark in report.remarks)
    readme = tmp_path / "shared" / "README.md"
    readme.write_text(readme.read_text(encoding="utf-8").replace("license: unknown", "license: mit"), encoding="utf-8")
    moved = shutil.move(tmp_path / "shared", tmp_path / "moved")
    pull_run(str(moved), tmp_path / "pulled")
    before, after = Run.open(run), Run.open(tmp_path / "pulled")
    assert all(torch.equal(tensor, after.task.state_dict()[name]) for name, tensor in before.task.state_dict().items())
    assert after.task.evaluate(place.data, "test") == before.task.evaluate(place.data, "test")
    assert after.graph == before.graph
    assert after.plan.run.seed == 7
    assert step_of(after.snapshot) == step_of(before.snapshot)
    assert str(place.folder) not in (moved / "plan.json").read_text(encoding="utf-8")
    stored = safetensors.torch.load_file(moved / "model.safetensors")
    assert len(stored) < len(before.task.state_dict()), "a shared tensor is stored once"
    kinds = {record["kind"] for record in after.folder.metrics()}
    assert kinds == {"EpochReport"}
    table = {"data": {"path": str(place.data.folder)}, "schedule": {"epochs": 3}}
    with pytest.raises(
        CheckpointError,
        match=r"has only weights, as shared runs have.*a new run with its weights: sememekit train --from",
    ):
        train(table, tmp_path / "pulled", resume=True)


def test_the_last_weights_and_their_figures(run: Path, tmp_path: Path) -> None:
    push(run, str(tmp_path / "last"), which="last")
    pull_run(str(tmp_path / "last"), tmp_path / "pulled")
    one, two = Run.open(run, which="last").task.state_dict(), Run.open(tmp_path / "pulled").task.state_dict()
    assert all(torch.equal(tensor, two[name]) for name, tensor in one.items())
    assert "Epoch 2," in model_card(run, which="last")


def test_absolute_paths_stay_at_home() -> None:
    plan = {"data": {"path": "/home/somebody/pd", "augment": ""}, "graph": {"path": "pd.graph"}, "list": ["/a/b", 3]}
    assert without_folders(plan) == {"data": {"path": "pd", "augment": ""}, "graph": {"path": "pd.graph"}, "list": ["b", 3]}


def test_what_was_changed_on_the_way_is_refused(run: Path, tmp_path: Path) -> None:
    push(run, str(tmp_path / "shared"))
    with pytest.raises(ConfigError, match="is there already; give another folder"):
        push(run, str(tmp_path / "shared"))

    def fails(problem: str, change: Any) -> None:
        folder = Path(shutil.copytree(tmp_path / "shared", tmp_path / "copy"))
        change(folder)
        with pytest.raises(CheckpointError, match=problem):
            pull_run(str(folder), tmp_path / "pulled")
        assert not (tmp_path / "pulled").exists()
        shutil.rmtree(folder)

    fails("was not written by 'sememekit push'", lambda folder: (folder / "run.json").unlink())
    fails("does not match its checksum", lambda folder: (folder / "plan.json").write_text("{}"))
    fails("cannot be read", lambda folder: (folder / "graph.json").unlink())

    def lists(name: str, digest: str) -> Any:
        def change(folder: Path) -> None:
            manifest = json.loads((folder / "manifest.json").read_text())
            (folder / "manifest.json").write_text(json.dumps({**manifest, name: digest}))

        return change

    fails("lists other files", lists("../../evil", "0" * 64))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["shared"], "nothing is left behind"
    (tmp_path / "pulled").mkdir()
    with pytest.raises(ConfigError, match="is there already; give another --out"):
        pull_run(str(tmp_path / "shared"), tmp_path / "pulled")


@pytest.mark.parametrize("name", ["run.json", "plan.json", "versions.json"])
@pytest.mark.parametrize("content", [b'{"format": 1, "snap', b"[1]", b"\xff{}"], ids=["torn", "list", "not UTF-8"])
def test_a_file_that_was_damaged_before_its_checksum_was_taken_is_named_in_one_line(
    run: Path, tmp_path: Path, name: str, content: bytes
) -> None:
    folder = tmp_path / "shared"
    push(run, str(folder))
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / name).write_bytes(content)
    (folder / "manifest.json").write_text(json.dumps({**manifest, name: hashlib.sha256(content).hexdigest()}))
    told = called("pull", str(folder), "--out", str(tmp_path / "pulled"))
    assert told.exit_code == 1
    said = " ".join(told.stderr.split())
    assert re.search(rf"{re.escape(name)} (is not JSON|holds no JSON object)", said), said
    assert "fetch or copy the folder again" in said
    assert "bug" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["shared"], "nothing is left behind"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """A hub that is a folder, with the calls that it was asked for."""
    asked: list[tuple[str, Any]] = []
    store = tmp_path / "hub"

    class HfApi:
        def create_repo(self, repo_id: str, *, private: bool, exist_ok: bool) -> None:
            asked.append(("create", (repo_id, private, exist_ok)))
            if repo_id.startswith("taken/"):
                raise PermissionError("403 Forbidden\nmore")

        def upload_folder(self, *, repo_id: str, folder_path: Path, commit_message: str) -> None:
            asked.append(("upload", repo_id))
            shutil.copytree(folder_path, store / repo_id)

    def snapshot_download(repo_id: str) -> str:
        if not (store / repo_id).is_dir():
            raise FileNotFoundError("404 no such repository")
        return str(store / repo_id)

    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(HfApi=HfApi, snapshot_download=snapshot_download))
    return asked


def test_the_hub_gets_and_gives_the_same_folder(hub: list[tuple[str, Any]], run: Path, place: Place, tmp_path: Path) -> None:
    push(run, "hf://me/sdlm")
    push(run, "hf://me/open", public=True)
    assert hub == [
        ("create", ("me/sdlm", True, True)),
        ("upload", "me/sdlm"),
        ("create", ("me/open", False, True)),
        ("upload", "me/open"),
    ]
    pull_run("hf://me/sdlm", tmp_path / "pulled")
    assert Run.open(tmp_path / "pulled").task.evaluate(place.data, "test") == Run.open(run).task.evaluate(place.data, "test")
    with pytest.raises(ConfigError, match=r"the hub refused \(PermissionError: 403 Forbidden\); log in with 'hf auth login'"):
        push(run, "hf://taken/sdlm")
    with pytest.raises(ConfigError, match=r"pull hf://me/absent: the hub refused \(FileNotFoundError"):
        pull_run("hf://me/absent", tmp_path / "other")
    with pytest.raises(ConfigError, match="write hf://owner/name"):
        push(run, "hf://sdlm")


def test_without_the_package_of_the_hub_the_extra_is_named(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ConfigError, match=r"needs the package 'huggingface_hub'.*sememekit\[hf\]"):
        push(run, "hf://me/sdlm")


def test_a_card_says_what_the_run_is(run: Path, place: Place) -> None:
    card = model_card(run, "mine")
    head, _, body = card.removeprefix("---\n").partition("\n---\n")
    best = next(
        record for record in reversed(Run.open(run).folder.metrics()) if record["kind"] == "EpochReport" and record["best"]
    )
    assert "license: unknown  # for the owner to fill in" in head
    assert "pipeline_tag: text-generation" in head
    assert "language: zh" in head
    assert '- "sdlm"' in head
    assert f"value: {best['valid']['perplexity']:.6g}" in head
    assert body.startswith("\n# mine\n")
    assert f"| validation perplexity | {best['valid']['perplexity']:,.4f} |" in body
    assert "| `decoder.num_bases` | `2` |" in body
    assert "| `run.seed` | `7` |" in body
    assert "encoder.initialisation" not in body, "a default is not listed"
    assert place.data.vocabulary.fingerprint in body
    assert f"| train | {place.data.signature.splits['train'].tokens:,} |" in body
    assert "| list:small |" in body
    assert f"| torch | {torch.__version__} |" in body
    assert str(place.folder) not in card
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load(head)
    assert found["model-index"][0]["results"][0]["metrics"][0]["type"] == "perplexity"


def with_a_worse_epoch(run: Path, folder: Path, **changes: Any) -> list[dict[str, Any]]:
    """A copy of a run that trained for one epoch more, which was worse; the lines of its epochs."""
    shutil.copytree(run, folder)
    copy = Run.open(folder, device="cpu")
    lines = copy.folder.metrics()
    worse = {**copy.folder.epochs()[-1], "best": False, "valid": {"perplexity": 99.0}, **changes}
    worse |= {"epoch": worse["epoch"] + 1, "step": worse["step"] + 7}
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in [*lines, worse]), encoding="utf-8")
    trainer = copy.folder.load("best", with_trainer=True).trainer
    copy.folder.save(worse["step"], copy.task, trainer, best=False)
    return copy.folder.epochs()


def test_the_figures_of_a_card_are_those_of_the_weights_that_were_chosen(run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    *_, chosen, worse = with_a_worse_epoch(run, folder)
    best, last = model_card(folder), model_card(folder, which="last")
    assert f"| validation perplexity | {chosen['valid']['perplexity']:,.4f} |" in best
    assert "Epoch 2, after" in best
    assert "the best on validation, which chose it" in best
    assert f"| validation perplexity | {worse['valid']['perplexity']:,.4f} |" in last
    assert "the last, and not the best on validation" in last
    push(folder, str(tmp_path / "pushed"), which="last")
    pull_run(str(tmp_path / "pushed"), tmp_path / "pulled")
    assert "| validation perplexity | 99.0000 |" in model_card(tmp_path / "pulled"), "the only weights that it has"
    whole = (folder / "metrics.jsonl").read_text(encoding="utf-8")
    digit = whole.replace(f'"perplexity": {chosen["valid"]["perplexity"]}', '"perplexity": 1.5')
    assert digit != whole
    for damaged in ("", digit, whole[:-9], whole.replace("\n", "\n\n", 1)):
        (folder / "metrics.jsonl").write_text(damaged, encoding="utf-8")
        for published in (lambda: model_card(folder), lambda: push(folder, str(tmp_path / "again"))):
            with pytest.raises(CheckpointError, match=r"metrics\.jsonl does not begin with the lines that the last checkpoint"):
                published()
    assert not (tmp_path / "again").exists()


def test_weights_that_nobody_validated_have_no_figures(run: Path, tmp_path: Path) -> None:
    with_a_worse_epoch(run, tmp_path / "run")
    stopped = Run.open(tmp_path / "run", device="cpu")
    stopped.folder.save(999, stopped.task, stopped.folder.load("last", with_trainer=True).trainer, best=False)
    card = model_card(tmp_path / "run", which="last")
    assert "The weights are those after 999 steps, inside an epoch: nobody validated them." in card
    assert "| validation" not in card
    assert "model-index" not in card
    stopped.folder.save(0, stopped.task, {}, best=True)  # as --from keeps what it begins with
    assert "after 0 steps, with which training began: no epoch was better." in model_card(tmp_path / "run")


def test_the_figures_of_a_card_are_those_of_clusters_assigned_since(place: Place, tmp_path: Path) -> None:
    train(place.table("self_organized", schedule__epochs=1), tmp_path / "run")
    report = cluster_update(tmp_path / "run", running_passes=1)
    assert report.after.perplexity != pytest.approx(report.before.perplexity)
    card = model_card(tmp_path / "run")
    assert f"| validation perplexity | {report.after.perplexity:,.4f} |" in card
    assert "with the clusters that `sememekit cluster-update` gave it then" in card
    assert "training perplexity" not in card
    cluster_update(tmp_path / "run", running_passes=1, split="test")
    assert "| validation" not in model_card(tmp_path / "run"), "nobody measured it there"


def called(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def test_the_commands(run: Path, tmp_path: Path) -> None:
    written = called("push", str(run), "--card", str(tmp_path / "README.md"))
    assert written.exit_code == 0, written.stderr
    again = called("push", str(run), "--card", "-")
    former = called("card", str(run))
    assert former.stdout == again.stdout, "the former name still works"
    assert called("card", str(run), "--out", str(tmp_path / "former.md")).exit_code == 0
    assert (tmp_path / "former.md").read_bytes() == (tmp_path / "README.md").read_bytes()
    neither = called("push", str(run))
    assert (neither.exit_code, "or --card FILE" in neither.stderr) == (1, True)
    assert again.stdout.rstrip("\n") == (tmp_path / "README.md").read_text(encoding="utf-8").rstrip("\n")
    (tmp_path / "mine.md").write_text("my own words", encoding="utf-8")
    refused = called("push", str(run), "--card", str(tmp_path / "mine.md"))
    assert (refused.exit_code, "is not a model card that sememekit wrote" in refused.stderr) == (1, True)
    refused = called("push", str(run), "--card", str(tmp_path / "absent" / "card.md"))
    assert (refused.exit_code, "absent does not exist; type: mkdir -p" in refused.stderr) == (1, True)
    pushed = called("push", str(run), str(tmp_path / "shared"), "--json")
    assert json.loads(pushed.stdout)["target"] == str(tmp_path / "shared")
    as_run = called("evaluate-ppl", str(tmp_path / "shared"))
    told = f"shared is what 'sememekit push' wrote; make a run of it: sememekit pull {tmp_path / 'shared'} --out RUN"
    assert (as_run.exit_code, told in as_run.stderr) == (1, True)
    absent = called("pull", str(tmp_path / "absent"), "--out", str(tmp_path / "pulled"))
    told = "absent does not exist; give a folder that 'sememekit push' wrote, or hf://owner/name"
    assert (absent.exit_code, told in absent.stderr) == (1, True)
    pulled = called("pull", str(tmp_path / "shared"), "--out", str(tmp_path / "pulled"))
    assert pulled.exit_code == 0, pulled.stderr
    assert Run.open(tmp_path / "pulled").plan.decoder is not None


def test_a_link_in_a_run_is_not_passed_on(run: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a private key", encoding="utf-8")
    for name in ("lexicon.txt", "augment.jsonl"):
        copy = tmp_path / f"copy-{name}"
        shutil.copytree(run, copy)
        (copy / "manifest.json").unlink()
        (copy / name).symlink_to(secret)
        with pytest.raises(CheckpointError, match=r"no regular file|manifest\.json is missing"):
            push(copy, str(tmp_path / f"shared-{name}"))
        assert not (tmp_path / f"shared-{name}").exists()


def test_no_name_becomes_markup_or_metadata_of_the_card(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    lines = (copy / "metrics.jsonl").read_text(encoding="utf-8")
    (copy / "metrics.jsonl").write_text(lines.replace('"perplexity"', '"x\\nlicense: mit"'), encoding="utf-8")
    fit(copy)
    card = model_card(copy, "a\n# [b](c) <script>")
    metadata = card.split("---\n")[1]
    assert [line for line in metadata.splitlines() if line.startswith("license:")] == [metadata.splitlines()[0]]
    assert "# a # \\[b\\](c) \\<script\\>\n" in card
    assert "\n# [b]" not in card


def test_training_with_sampled_words_is_called_an_estimate(place: Place, tmp_path: Path) -> None:
    train(place.table("softmax", decoder__samples=3, schedule__epochs=1), tmp_path / "run")
    told = "training, estimated from 3 sampled words"
    assert told in model_card(tmp_path / "run")
    assert told in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    train(place.table("softmax", schedule__epochs=1), tmp_path / "exact")
    assert "estimated from" not in model_card(tmp_path / "exact") + (tmp_path / "exact" / "report.html").read_text()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/me/data/pd", "pd"),
        ("sememekit preprocess plain /home/me/x --out ../project-x/data", "sememekit preprocess plain x --out data"),
        (
            "--source hownet2000:/home/me/glossary.dat --lemmas=~/forms.txt",
            "--source hownet2000:glossary.dat --lemmas=forms.txt",
        ),
        ("data/pd", "data/pd"),
        ("one half is 1/2, and/or more", "one half is 1/2, and/or more"),
    ],
)
def test_folders_go_out_of_commands_as_out_of_paths(text: str, expected: str) -> None:
    assert without_folders({"a": [text]}) == {"a": [expected]}


def test_the_checkpoints_of_another_seed_are_refused(run: Path, place: Place, tmp_path: Path) -> None:
    other = tmp_path / "other"
    train(place.table("sdlm", run__seed=8), other)
    shutil.rmtree(other / "checkpoints")
    shutil.copytree(run / "checkpoints", other / "checkpoints")
    with pytest.raises(CheckpointError, match="is a snapshot of another run than"):
        Run.open(other, device="cpu").load()
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    Run.open(copy, device="cpu").load()
