"""How numbers are written for readers: one way for terminals, pages and messages."""

from __future__ import annotations


def formatted(value: float, form: str) -> str:
    """``format(value, form)``, with a blank before the sign of a percentage, as the documentation writes it.

    >>> formatted(0.1823, ".1%"), formatted(1823, ",.0f")
    ('18.2 %', '1,823')
    """
    text = format(value, form)
    return f"{text[:-1]} %" if form.endswith("%") else text


def percent(share: float, digits: int = 1, sign: str = "") -> str:
    """A share of 1 as a percentage; ``sign="+"`` for differences.

    >>> percent(0.1823), percent(0.1823, 0), percent(0.1823, sign="+")
    ('18.2 %', '18 %', '+18.2 %')
    """
    return formatted(share, f"{sign}.{digits}%")
