"""Read pickles of unknown origin without running code: only dict, list, str, numbers, bool and None.

A first pass inspects the instructions without running them, and refuses all instructions that plain data do not need. So
classes, functions, extensions and persistent ids never reach the unpickler. The second pass unpickles, and looks up no name."""

import io
import pickle
import pickletools
from typing import Any, NoReturn

from sememekit.errors import DataError

_FRAMING = {"PROTO", "FRAME", "STOP", "MARK"}
_CONTAINERS = {"EMPTY_DICT", "DICT", "SETITEM", "SETITEMS", "EMPTY_LIST", "LIST", "APPEND", "APPENDS"}
_TEXTS = {"BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE"}
_NUMBERS = {"BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1", "LONG4", "BINFLOAT", "FLOAT"}
_CONSTANTS = {"NONE", "NEWTRUE", "NEWFALSE"}
_SHARING = {"MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "GET", "BINGET", "LONG_BINGET"}
ALLOWED = frozenset(_FRAMING | _CONTAINERS | _TEXTS | _NUMBERS | _CONSTANTS | _SHARING)
"""Instructions for plain data; the last group allows shared objects.

Tuples and sets stay out: the hash of deeply nested tuples can exhaust the C stack."""

_MEMO = frozenset({"PUT", "BINPUT", "LONG_BINPUT"})
_BROKEN = (
    *(pickle.UnpicklingError, ArithmeticError, AttributeError, EOFError, LookupError),
    *(MemoryError, RecursionError, TypeError, ValueError),
)


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"asks for {module}.{name}")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise pickle.UnpicklingError("asks for an object outside the file")


def load_plain_pickle(data: bytes, where: str) -> Any:
    """Return the object in a pickle; ``where`` names the file. Raises DataError, with nothing run: it is broken, or holds other
    types than dict, list, str, numbers, bool and None."""
    num_instructions = 0
    try:
        for instruction, argument, position in pickletools.genops(data):
            if instruction.name not in ALLOWED:
                raise DataError(
                    f"{where}, byte {position}: the pickle holds {instruction.name}, and only dict, list, str, numbers, "
                    "bool and None are read; nothing of it was run. Get the file from its publisher again"
                )
            if instruction.name in _MEMO and int(argument or 0) > num_instructions:
                raise DataError(
                    f"{where}, byte {position}: a damaged pickle: {instruction.name} {argument!r} is not possible here"
                )
            num_instructions += 1
        return _PlainUnpickler(io.BytesIO(data)).load()
    except _BROKEN as error:
        raise DataError(f"{where}: not an intact pickle: {type(error).__name__}: {error}") from None
