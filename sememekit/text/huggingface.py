"""Folders of Hugging Face models: their paths, and their tokenizers as segmenters.

Nothing is downloaded, and only ``tokenizer.json``, ``tokenizer_config.json`` and ``special_tokens_map.json`` are read here."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, final

from sememekit.errors import ConfigError, DataError
from sememekit.files import at_home, needed, read_object, refuse_odd_files, warn
from sememekit.text.pieces import BYTE_OF
from sememekit.text.scripts import EAST_ASIAN
from sememekit.text.vocabulary import END, STOP, UNKNOWN

PREFIX: Final = "hf:"  # prefix of a model folder on the command line: ``--encoder hf:PATH``
PIECES: Final = "pieces.json"  # file of a tokenizer in prepared data and runs; see ``HuggingFacePieces.content``
FORMAT: Final = 1
FEW: Final = 0.8  # least share of the rows of a model that are pieces; models pad their rows, but by less


@contextmanager
def quiet_transformers(use: str) -> Iterator[None]:
    """Silence warnings and progress bars of transformers inside the block. Raises ConfigError as ``needed``."""
    log = needed("transformers", use).utils.logging
    level, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        yield
    finally:
        log.set_verbosity(level)
        if bars:
            log.enable_progress_bar()


def local_folder(name: str, use: str) -> Path:
    """Return the folder of a model: ``name`` itself, or its folder in the cache of huggingface_hub.

    Nothing is downloaded. Raises ConfigError, with a message that begins with ``use``: neither exists."""
    folder = at_home(name)
    if folder.is_dir():
        return folder
    told = f"{use}: {name!r} is no folder"
    if name.count("/") > 1 or name.startswith((".", "/", "~")):
        raise ConfigError(f"{told}; give the folder of a model, with config.json and tokenizer.json")
    hub = needed("huggingface_hub", use)
    try:
        return Path(hub.snapshot_download(name, local_files_only=True))
    except Exception as error:
        raise ConfigError(
            f"{told}, and the cache of huggingface_hub has no model of that name ({type(error).__name__}); sememekit downloads "
            f"no models: run 'hf download {name}' first, or give the folder of a model"
        ) from None


def model_folder(name: str, use: str, model: str = "AutoModelForCausalLM") -> Path:
    """Return the folder of a model (``local_folder``) after a check of its files, before any weight is read.

    Messages begin with ``use``; ``model`` is the class of transformers that a remedy names. Raises ConfigError: no readable
    config.json with a ``model_type``, no safetensors, an absent or damaged one, or other weight files or code of the hub."""
    folder = local_folder(name, use)
    refuse_odd_files(folder, lambda why: ConfigError(f"{use}: {why}"))
    again = (
        f'write them with: python -c "from transformers import {model} as M; '
        f"M.from_pretrained('{folder}').save_pretrained('{folder}')\""
    )
    danger, copied = "other files of weights can run code when they are read", "copy it again from where it came from"
    if not (folder / "config.json").is_file():
        raise ConfigError(
            f"{use}: {folder} has no config.json; give the folder of a model, with config.json and tokenizer.json"
        )
    table = _read_configuration(folder, use)
    if not any(folder.glob("*.safetensors")):
        raise ConfigError(f"{use}: {folder} holds no weights as safetensors; {danger}; {again}")
    names = {folder / "config.json": [table.get("transformers_weights") or "model.safetensors"]}
    for index in folder.glob("*.safetensors.index.json"):
        listed = read_object(index, ConfigError).get("weight_map")
        names[index] = list(listed.values()) if isinstance(listed, dict) else [listed]
    for file, given in names.items():
        for name in dict.fromkeys(given):
            if Path(str(name)).name != name or not name.endswith((".safetensors", ".safetensors.index.json")):
                raise ConfigError(
                    f"{use}: {file} names {name!r:.80}, which is no safetensors file of its folder; {danger}; {again}"
                )
            if file.name != "config.json" and not (folder / name).is_file():
                raise ConfigError(f"{use}: {file} names {name}, which is not there; {copied}")
    opened = needed("safetensors", use).safe_open
    for file in folder.glob("*.safetensors"):
        try:
            with opened(file, "np"):
                pass
        except Exception as error:
            size = f"{file.stat().st_size:,} bytes"
            raise ConfigError(f"{use}: {file} is damaged or cut off ({error}; {size}); {copied}") from None
    return folder


def _read_configuration(folder: Path, use: str) -> dict[str, Any]:
    """Return config.json. Raises ConfigError: it is no JSON object, names no kind of model, or takes code of the hub."""
    file = folder / "config.json"
    table = read_object(file, ConfigError)
    if not isinstance(table.get("model_type"), str):
        raise ConfigError(f"{use}: {file} has no model_type, so nothing says which kind of model it is; copy it again")
    check_configuration(table, f"{use}: {file}")
    return table


def positions_of(configuration: Any) -> int | None:
    """Return the most pieces that a model reads at once; None without a limit (absent, 0 or negative, as in XLNet)."""
    found = getattr(configuration.get_text_config(), "max_position_embeddings", None)
    return found if isinstance(found, int) and found > 0 else None


def asked_of_transformers(use: str, meant: str, what: str, call: Callable[[], Any]) -> Any:
    """Return the result of ``call``. Raises ConfigError if transformers cannot open ``what`` as the ``meant`` kind of model."""
    try:
        with quiet_transformers(use):
            return call()
    except ConfigError:
        raise
    except Exception as error:
        first = next((line for line in str(error).splitlines() if line.strip()), "")
        raise ConfigError(
            f"{use}: transformers cannot open {what} as a {meant} ({type(error).__name__}: {first}); give the folder of one; a "
            "model that brings its own code is not run"
        ) from error


def load_published(folder: Path, use: str, kind: str, meant: str, pieces: Mapping[str, int], dtype: str = "float32") -> Any:
    """Load a model of the transformers class ``kind`` from a ``model_folder``, in evaluation mode, with its trained weights.

    ``pieces`` are the ids of the pieces of its tokenizer, without special ones. Raises ConfigError: as
    ``asked_of_transformers``; weights are absent, of other shapes than config.json says, or not finite; or the model has no
    row for one of the pieces. Warns if it has many more rows than there are pieces."""
    load = getattr(needed("transformers", use), kind).from_pretrained
    given = {"local_files_only": True, "use_safetensors": True, "trust_remote_code": False, "output_loading_info": True}
    given |= {"ignore_mismatched_sizes": True}  # so that the tensor can be named
    model, report = asked_of_transformers(use, meant, "it", lambda: load(folder, dtype=dtype, **given))
    for name, stored, described in sorted(report["mismatched_keys"]):
        raise ConfigError(
            f"{use}: {name} has the shape {tuple(stored)} in the weights and {tuple(described)} by config.json; copy both "
            "again from where they came from"
        )
    if missing := sorted(report["missing_keys"]):
        raise ConfigError(
            f"{use}: the folder has no weights for {missing[0]}, so that its answers would be random; give a {meant} with all "
            "that it was trained with"
        )
    bad = next((name for name, weights in model.named_parameters() if not weights.isfinite().all()), None)
    if bad is not None:
        raise ConfigError(f"{use}: {bad} holds weights that are not finite; copy them again from where they came from")
    rows = model.get_input_embeddings().num_embeddings
    if not pieces:
        raise ConfigError(f"{use}: {folder} has no tokenizer; copy its tokenizer.json from where the weights came from")
    sizes = f"the tokenizer has {max(pieces.values()) + 1:,} pieces, and the model {rows:,} rows"
    if without := [piece for piece, number in pieces.items() if number >= rows]:
        raise ConfigError(
            f"{use}: {sizes}, none for {', '.join(without[:3])}; if they were added to the tokenizer alone, call "
            f"model.resize_token_embeddings(len(tokenizer)) and model.save_pretrained({str(folder)!r}); else the tokenizer is "
            "of another model"
        )
    if len(pieces) < FEW * rows:
        warn(f"{use}: {sizes}; if the tokenizer is of another model, the answers mean nothing")
    return model.eval()


def check_configuration(table: Any, where: str) -> None:
    """Raise ConfigError if a configuration takes attention or experts from a repository of the hub."""
    for key, value in table.items() if isinstance(table, dict) else ():
        if key.endswith("_implementation") and "/" in str(value):
            raise ConfigError(f"{where}: {key} is {value!r:.80}, which is code of the hub; delete the line: it is not run")
        check_configuration(value, where)


@final
class HuggingFacePieces:
    """Pieces of the tokenizer of a Hugging Face model; read one with ``of_folder``.

    >>> segmenter = HuggingFacePieces.of_folder("models/gpt2")
    >>> segmenter.segment("a good film")
    ['a', '▁good', '▁film']

    Pieces have readable, distinct names: complete characters are unchanged, other bytes are written ``<0xE4>``, a blank ``▁``.
    The pieces for unknown text and for the end of text are ``<unk>`` and ``<eos>``.

    Attributes:
        names: names of all pieces by model id.
        content: JSON with ``tokenizer``, as in ``tokenizer.json``, and the pieces ``begin``, ``end``, ``unknown`` or null.
        around: ids that the tokenizer puts around a text, such as the ids of ``[CLS]`` and ``[SEP]``. start: the id among them
        that begins a text, such as the id of ``<s>``, if any.
        ordinary: ids of the pieces that a text can have, without special ones."""

    def __init__(self, content: bytes, where: str) -> None:
        """Take the ``content`` of the file ``where``. Raises DataError: it is invalid."""
        tokenizers = needed("tokenizers", where)
        try:
            table = json.loads(content)
            if table["format"] != FORMAT:
                raise ValueError(f"format {table['format']!r}")
            self._tokenizer: Any = tokenizers.Tokenizer.from_str(json.dumps(table["tokenizer"], ensure_ascii=False))
            begin, end, unknown = table["begin"], table["end"], table["unknown"]
            byte_level = "ByteLevel" in json.dumps([table["tokenizer"].get("decoder"), table["tokenizer"].get("pre_tokenizer")])
        except Exception as error:
            raise DataError(
                f"{where}: no tokenizer that can be read ({error}); copy it again from where it came from"
            ) from None
        self.content, self._where = content, where
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        tokens: dict[int, str] = {index: token for token, index in self._tokenizer.get_vocab(with_added_tokens=True).items()}
        self.names: tuple[str, ...] = _names(tokens, end, unknown, byte_level)
        self.end_id: int | None = self._tokenizer.token_to_id(end) if end is not None else None
        self.unknown_id: int | None = self._tokenizer.token_to_id(unknown) if unknown is not None else None
        self._ids = {name: index for index, name in enumerate(self.names)}
        special = {token["id"] for token in table["tokenizer"].get("added_tokens") or () if token.get("special")}
        self.ordinary = {self.names[index]: index for index in sorted(tokens) if index not in special}
        self.around: tuple[int, ...] = tuple(self._tokenizer.encode("").ids)
        begins = begin is not None and self.around[:1] == (self._tokenizer.token_to_id(begin),)
        self.start: tuple[int, ...] = self.around[:1] if begins else ()
        self.description = f"Hugging Face tokenizer, {len(self.names)} pieces, {hashlib.sha256(content).hexdigest()[:16]}"

    @classmethod
    def of_folder(cls, name: str, use: str = "--segmenter hf:PATH") -> "HuggingFacePieces":
        """Read the tokenizer of the model ``name``; see ``local_folder``. Raises ConfigError: no fast tokenizer."""
        folder = local_folder(name, use)
        file = folder / "tokenizer.json"
        if not file.is_file():
            raise ConfigError(
                f'{use}: {folder} has no tokenizer.json; write one with: python -c "from transformers import AutoTokenizer as '
                f"T; T.from_pretrained('{folder}').save_pretrained('{folder}')\""
            )
        special = special_tokens(folder, "bos_token", "eos_token", "unk_token")
        table = {
            "format": FORMAT,
            "tokenizer": read_object(file, DataError),
            "begin": special["bos_token"],
            "end": special["eos_token"],
            "unknown": special["unk_token"],
        }
        return cls((json.dumps(table, ensure_ascii=False, sort_keys=True) + "\n").encode(), str(file))

    def __reduce__(self) -> "tuple[type[HuggingFacePieces], tuple[bytes, str]]":
        return HuggingFacePieces, (self.content, self._where)

    def segment(self, text: str) -> list[str]:
        """Return the pieces of a text, without special pieces around it."""
        found = self._tokenizer.encode(" ".join(text.split()), add_special_tokens=False).ids
        return [self.names[index] for index in found]

    def id(self, name: str) -> int | None:
        """Return the id of a piece in the model, or None."""
        return self._ids.get(name)

    @property
    def line_end(self) -> tuple[int, ...]:
        """The pieces of a line end, which stands for the end of a text where the tokenizer names no piece for it."""
        return tuple(self._cut("\n"))

    def of_words(self, words: Sequence[str], blanks: str = "auto") -> list[tuple[int, ...]]:
        """Return the ids of the pieces of each word in running text, independent of its neighbours.

        ``<eos>`` and ``</s>`` become the end-of-text piece, or else a line end; ``<unk>`` becomes the unknown piece if this is
        a different piece, or else is spelled in pieces. A word is tokenized after another word or mark, or alone if it would
        change the pieces of the other. Raises ConfigError: a word without pieces."""
        found: list[tuple[int, ...]] = []
        anchors = [(anchor, self._cut(anchor)) for anchor in ("a", "1", "，", ",")]
        special = {UNKNOWN: self.unknown_id if self.unknown_id != self.end_id else None, END: self.end_id, STOP: self.end_id}
        for word in words:
            if (known := special.get(word)) is not None:
                found.append((known,))
                continue
            written = "\n" if word in (END, STOP) else (" " if blank_before(word, blanks) else "") + word
            whole = ((before, self._cut(anchor + written)) for anchor, before in anchors)
            own = next((ids[len(before) :] for before, ids in whole if ids[: len(before)] == before), None)
            ids = own or self._cut(written)
            if not ids:
                raise ConfigError(
                    f"{self._where}: its tokenizer leaves nothing of the word {word!r}; take such words out of the text, or "
                    "prepare the data with the tokenizer itself: sememekit preprocess plain TEXT --segmenter hf:PATH"
                )
            found.append(tuple(ids))
        return found

    def _cut(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)


def blank_before(word: str, blanks: str) -> bool:
    """Return whether a blank stands before a word in running text; see ``Blanks``."""
    if blanks == "auto":
        return EAST_ASIAN.match(word) is None
    return blanks == "always"


def _names(tokens: dict[int, str], end: str | None, unknown: str | None, byte_level: bool) -> tuple[str, ...]:
    """Return a readable name for each id, even if it is not a piece."""
    table = BYTE_OF if byte_level else {}
    names: list[str] = []
    taken, special = {UNKNOWN, END}, {unknown: UNKNOWN, end: END}
    for index in range(max(tokens, default=-1) + 1):
        token = tokens.get(index)
        if token is not None and token in special:
            names.append(special[token])
            continue
        name = f"<{index}>" if token is None else _readable(token, table)
        while name in taken or not name:
            name = f"{name}<{index}>"
        taken.add(name)
        names.append(name)
    return tuple(names)


def _readable(token: str, table: dict[str, int]) -> str:
    text = token
    if table and all(character in table for character in token):
        text = bytes(table[character] for character in token).decode("utf-8", errors="surrogateescape")
    shown = []
    for character in text:
        if "\udc80" <= character <= "\udcff":
            shown.append(f"<0x{ord(character) - 0xDC00:02X}>")
        elif character == " ":
            shown.append("▁")
        elif character.isspace() or character == "\0":
            shown += [f"<0x{byte:02X}>" for byte in character.encode()]
        else:
            shown.append(character)
    return "".join(shown)


def special_tokens(folder: Path, *keys: str) -> dict[str, str | None]:
    """Special pieces, such as ``bos_token``, that the files beside a tokenizer name; None for a piece that is not named."""
    found: dict[str, str | None] = dict.fromkeys(keys)
    for file in (folder / "special_tokens_map.json", folder / "tokenizer_config.json"):
        table = read_object(file, DataError) if file.is_file() else {}
        for key in found:
            value = table.get(key)
            value = value.get("content") if isinstance(value, dict) else value
            found[key] = value if isinstance(value, str) else found[key]
    return found
