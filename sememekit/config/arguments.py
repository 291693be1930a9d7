"""Arguments of the functions that people call from Python, checked as settings are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, Union, get_args, get_type_hints

from pydantic import ConfigDict, create_model

from sememekit.config.settings import Settings, read_settings


class _Arguments(Settings):
    """Base of the models that are made of signatures, whose types need not be those of settings."""

    model_config = ConfigDict(arbitrary_types_allowed=True)


def checked_arguments(where: str, options: Mapping[str, Any], *functions: Callable[..., Any]) -> dict[str, Any]:
    """The options as the functions take them: a path for its string, say.

    Args:
        where: opens the message of an error, such as ``run.explain``.
        options: arguments by name.
        functions: the arguments that they take by name alone are those that are allowed, each of its annotated type.

    Raises:
        ConfigError: a name that none of them takes, or a value of another type, with what is allowed.
    """
    fields: dict[str, Any] = {}
    for function in functions:
        types = get_type_hints(function, include_extras=True)
        for name, parameter in signature(function).parameters.items():
            if parameter.kind is Parameter.KEYWORD_ONLY:
                fields[name] = (_of_one_kind(types.get(name, Any)), None)
    checked = read_settings(create_model("Arguments", __base__=_Arguments, **fields), options, where)
    return {name: getattr(checked, name) for name in options}


def _of_one_kind(annotation: Any) -> Any:
    """The type without ``str`` where it is of paths, which are made of strings anyway: a message is of one type then."""
    types = get_args(annotation)
    return Union[tuple(one for one in types if one is not str)] if Path in types else annotation  # noqa: UP007
