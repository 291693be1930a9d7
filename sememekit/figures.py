"""Uniform formatting of numbers in terminals, pages and messages."""


def formatted(value: float, form: str) -> str:
    """``format(value, form)``, with a blank before the sign of a percentage, as the documentation writes it.

    >>> formatted(0.1823, ".1%"), formatted(1823, ",.0f")
    ('18.2 %', '1,823')"""
    text = format(value, form)
    return f"{text[:-1]} %" if form.endswith("%") else text


def percent(share: float | None, digits: int = 1, sign: str = "", *, unit: bool = True) -> str:
    """A share of 1 as a percentage; ``sign="+"`` for differences; "–" for none. ``unit=False`` is for tables with a unit.

    >>> percent(0.1823), percent(0.1823, 0), percent(0.1823, sign="+"), percent(0.1823, unit=False), percent(None)
    ('18.2 %', '18 %', '+18.2 %', '18.2', '–')"""
    if share is None:
        return "–"
    return formatted(share, f"{sign}.{digits}%") if unit else f"{100 * share:{sign}.{digits}f}"


def percent_limits(low: float | None, high: float | None, digits: int = 1, sign: str = "") -> str:
    """The ends of an interval in per cent.

    >>> percent_limits(0.451, 0.589), percent_limits(None, None)
    ('45.1 to 58.9', '–')"""
    if low is None or high is None:
        return "–"
    return f"{percent(low, digits, sign, unit=False)} to {percent(high, digits, sign, unit=False)}"


def percent_interval(
    share: float | None, low: float | None, high: float | None, digits: int = 1, sign: str = "", *, unit: bool = True
) -> str:
    """A share with its interval, if it has one.

    >>> percent_interval(0.52, 0.451, 0.589), percent_interval(-0.02, None, None, sign="+")
    ('52.0 % (45.1 to 58.9)', '-2.0 %')"""
    shown = percent(share, digits, sign, unit=unit)
    return shown if low is None or high is None else f"{shown} ({percent_limits(low, high, digits, sign)})"


def format_value(value: object) -> str:
    """A value with thousands separators, or with four significant digits."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.2f}" if 100 <= abs(value) < 1e9 else f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {format_value(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(format_value(item) for item in value)
    return str(value)
