"""The tokenizer of a Hugging Face model as segmenter: readable pieces, pieces of words, data and graphs of pieces."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

from sememekit.data.prepared import PreparedData
from sememekit.errors import ConfigError, DataError
from sememekit.jobs.preprocess import preprocess
from sememekit.prepare.settings import PreprocessSettings
from sememekit.sememes import build_graph
from sememekit.text.huggingface import HuggingFacePieces, blank_before, local_folder, model_folder
from sememekit.text.pieces import BYTE_OF
from sememekit.text.segmenters import open_segmenter
from tests.small import small_lexicon
from tests.small_run import write_text
from tests.tiny_models import END, write_tokenizer

tokenizers = pytest.importorskip("tokenizers")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tokenizer(tmp_path_factory.mktemp("tokenizer"))


def test_pieces_are_readable_and_have_one_name_each(folder: Path) -> None:
    pieces = HuggingFacePieces.of_folder(str(folder))
    assert pieces.segment("我 吃 苹果 。") == ["我", "▁吃", "▁苹果", "▁。"]
    assert pieces.segment("  我\n 吃  ") == ["我", "▁吃"]
    assert pieces.segment("") == []
    assert pieces.segment("é") == ["<0xC3>", "<0xA9>"]
    assert "Ġ".encode() in pieces.content, "characters are stored as they are"
    assert pieces.names[0] == "<eos>"
    assert len(set(pieces.names)) == len(pieces.names) == 290
    assert not any(character.isspace() for name in pieces.names for character in name)
    assert [pieces.id(name) for name in pieces.names] == list(range(290))


def test_a_byte_has_the_character_of_byte_level_tokenizers() -> None:
    assert sorted(BYTE_OF.values()) == list(range(256))
    assert set(BYTE_OF) == set(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    assert [BYTE_OF[letter] for letter in "!Ġÿ"] == [0x21, 0x20, 0xFF]


def test_pieces_of_words_are_those_of_running_text(folder: Path) -> None:
    pieces = HuggingFacePieces.of_folder(str(folder))
    own = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    whole = own.encode("我 吃 film 。").ids
    found = pieces.of_words(["我", "吃", "film", "。"], "always")
    assert own.decode([number for ids in found for number in ids]) == " 我 吃 film 。"
    assert [number for ids in found[1:] for number in ids] == whole[1:]
    assert pieces.of_words(["吃", "film"], "auto") == [tuple(own.encode("吃").ids), tuple(own.encode(" film").ids)]
    assert pieces.of_words(["<eos>", "</s>"]) == [(0,), (0,)]
    assert pieces.of_words(["<unk>"]) == [tuple(own.encode(" <unk>").ids)], "no piece for what is unknown: it is spelled"


@pytest.mark.parametrize(("word", "expected"), [("film", True), ("苹果", False), ("，", False), ("３", False), (".", True)])
def test_where_a_blank_stands(word: str, expected: bool) -> None:
    assert blank_before(word, "auto") is expected
    assert blank_before(word, "always")
    assert not blank_before(word, "never")


def test_other_kinds_of_tokenizers(tmp_path: Path) -> None:
    """Pieces with ▁, a piece for what is unknown, one that is put before each text, and names that would collide."""
    vocabulary = {"<unk>": 0, "<s>": 1, "</s>": 2, "▁": 3, "▁我": 4, "吃": 5, "<0xE4>": 6, "▁b": 7, " b": 9}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    tokenizer.enable_truncation(1)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    special = {"bos_token": "<s>", "eos_token": {"content": "</s>"}, "unk_token": "<unk>"}
    (tmp_path / "special_tokens_map.json").write_text(json.dumps(special), encoding="utf-8")
    pieces = HuggingFacePieces.of_folder(str(tmp_path))
    assert pieces.names == ("<unk>", "<s>", "<eos>", "▁", "▁我", "吃", "<0xE4>", "▁b", "<8>", "▁b<9>")
    assert (pieces.start, pieces.end_id, pieces.unknown_id) == ((1,), 2, 0)
    assert pieces.segment("我 b 无 b") == ["▁我", "▁b", "<unk>", "▁b"]
    assert pieces.of_words(["<unk>"]) == [(0,)]


def test_what_is_no_tokenizer(tmp_path: Path, folder: Path) -> None:
    for name in ("./absent", "/absent", "~/absent", "a/b/c"):  # no names of the hub
        with pytest.raises(ConfigError, match="is no folder; give the folder of a model"):
            local_folder(name, "--segmenter hf:PATH")
    with pytest.raises(ConfigError, match=r"the cache of huggingface_hub has no model.*run 'hf download nobody/nothing' first"):
        local_folder("nobody/nothing", "--segmenter hf:PATH")
    with pytest.raises(ConfigError, match=r"has no tokenizer\.json; write one with"):
        open_segmenter(f"hf:{tmp_path}")
    (tmp_path / "tokenizer.json").write_text('{"version": "1.0"}', encoding="utf-8")
    with pytest.raises(DataError, match="no tokenizer that can be read"):
        open_segmenter(f"hf:{tmp_path}")
    with pytest.raises(ConfigError, match="write --segmenter hf:PATH"):
        open_segmenter("hf")


def test_data_of_pieces_open_without_the_model_and_get_sememes(folder: Path, tmp_path: Path) -> None:
    source = Path(shutil.copytree(folder, tmp_path / "model"))
    text = write_text(tmp_path / "text", 30)
    preprocess("plain", text, tmp_path / "data", PreprocessSettings(segmenter=f"hf:{source}"))
    preprocess("plain", text, tmp_path / "rare", PreprocessSettings(segmenter=f"hf:{source}", min_count=2))
    data = PreparedData.open(tmp_path / "data")
    assert data.signature.options["segmenter"] == "hf"
    names = HuggingFacePieces.of_folder(str(source)).names
    assert set(data.vocabulary.tokens) == set(names), "all pieces, and <eos> is the one that ends a text"
    assert len(PreparedData.open(tmp_path / "rare").vocabulary) < 60
    same = PreprocessSettings(vocabulary=tmp_path / "data", segmenter=f"hf:{source}")
    preprocess("plain", text, tmp_path / "same", same)
    changed = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))
    changed["model"]["vocab"]["another"] = 1000
    (source / "tokenizer.json").write_text(json.dumps(changed), encoding="utf-8")
    with pytest.raises(DataError, match=r"--segmenter hf:.* has another segmenter, .*; leave it out"):
        preprocess("plain", text, tmp_path / "other", same)
    line = (text / "train.txt").read_text(encoding="utf-8").splitlines()[0]
    shutil.rmtree(source)
    expected = [*data.segmenter().segment(line), "<eos>"]
    assert data.vocabulary.decode(data.tokens("train")[: len(expected)]) == expected
    again = pickle.loads(pickle.dumps(data.segmenter()))
    assert again.segment(line) == expected[:-1]
    more = tmp_path / "more"
    preprocess("plain", text, more, PreprocessSettings(vocabulary=tmp_path / "data"))
    assert PreparedData.open(more).segmenter().description == data.segmenter().description
    graph = build_graph(data.vocabulary, [small_lexicon()])
    sememes = {
        word: [set(sense.sememes) for sense in entry.senses]
        for word, entry in zip(data.vocabulary.tokens, graph.entries(), strict=True)
    }
    assert sememes["▁吃"] == [{"吃"}, {"受"}]
    assert sememes["▁苹果"][0] == {"水果", "植物"}
    (tmp_path / "data" / "pieces.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match="is not the model by which the text was cut"):
        PreparedData.open(tmp_path / "data")
    (tmp_path / "data" / "pieces.json").unlink()
    with pytest.raises(DataError, match=r"has no pieces\.json"):
        data.segmenter()


def test_the_end_of_texts_is_the_piece_of_that_name(folder: Path) -> None:
    assert json.loads((folder / "tokenizer_config.json").read_text())["eos_token"] == END
    assert HuggingFacePieces.of_folder(str(folder)).end_id == 0


def test_a_folder_of_a_model_has_safetensors_and_names_no_others(tmp_path: Path) -> None:
    numpy = pytest.importorskip("safetensors.numpy")

    def check(told: str = "") -> None:
        if not told:
            assert model_folder(str(tmp_path), "here") == tmp_path
            return
        with pytest.raises(ConfigError, match=f"^here: .*{told}"):
            model_folder(str(tmp_path), "here")

    check("has no config.json; give the folder of a model")
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    check("has no model_type")
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}', encoding="utf-8")
    check("holds no weights as safetensors; .*AutoModelForCausalLM as M")
    file = tmp_path / "model.safetensors"
    file.touch()
    check("model.safetensors is damaged or cut off .*0 bytes.; copy it again")
    numpy.save_file({"a": np.zeros(100, dtype=np.float32)}, file)
    check()
    content = file.read_bytes()
    file.write_bytes(content[:-20])
    check("model.safetensors is damaged or cut off")
    file.write_bytes(content)
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {"a": "model.safetensors"}}', encoding="utf-8")
    check()
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {"a": "other.safetensors"}}', encoding="utf-8")
    check("index.json names other.safetensors, which is not there; copy it again")
    for listed in ('{"a": "../model.safetensors"}', '{"a": "model.bin"}', "7"):
        (tmp_path / "model.safetensors.index.json").write_text(f'{{"weight_map": {listed}}}', encoding="utf-8")
        check("index.json names .*, which is no safetensors file of its folder")
