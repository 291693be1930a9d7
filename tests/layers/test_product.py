"""The quick product equals ``@`` for every layout that it may be given."""

from __future__ import annotations

from importlib import import_module

import pytest
import torch

from sememekit.layers import product
from sememekit.layers.product import TORCH_VERSIONS, has_quick_product

MODULE = import_module("sememekit.layers.product")
HERE = str(torch.__version__)
"""The release of torch that the tests run on."""


@pytest.mark.parametrize("quick", [True, False], ids=["oneDNN", "fallback"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_equals_the_plain_product_for_any_strides(dtype: torch.dtype, quick: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if quick and not has_quick_product(HERE):
        pytest.skip(f"torch {HERE} takes the fallback; tried: {', '.join(sorted(TORCH_VERSIONS))}")
    monkeypatch.setattr(MODULE, "_QUICK", quick)
    torch.manual_seed(1)
    left, right = torch.randn(9, 5, dtype=torch.float64).to(dtype), torch.randn(7, 5, dtype=torch.float64).to(dtype)
    expected = left.double() @ right.double().T
    layouts = [
        lambda m: m,
        lambda m: m.T.contiguous().T,
        lambda m: torch.stack([m, m], dim=1)[:, 0],
        lambda m: m.repeat(1, 2)[:, :5],
    ]
    for arrange_left in layouts:
        for arrange_right in layouts:
            result = product(arrange_left(left), arrange_right(right))
            assert result.is_contiguous()
            assert result.dtype == dtype
            torch.testing.assert_close(
                result.double(),
                expected,
                rtol=2e-2 if dtype == torch.bfloat16 else 1e-5,
                atol=1e-1 if dtype == torch.bfloat16 else 1e-6,
            )


def test_only_releases_on_which_it_was_tried_take_the_private_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release that is not named here needs a look: does ``torch.ops.mkldnn._linear_pointwise`` still do what it did?"""
    assert {"2.13"} == TORCH_VERSIONS
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)
    there = hasattr(torch.ops.mkldnn, "_linear_pointwise")
    assert (has_quick_product("2.13.0"), has_quick_product("2.13.1+cpu")) == (there, there)
    for other in ("2.12.1", "2.14.0", "2.130.0", "3.13.0", "2.13.0a0+git1", "2.13.0.dev1", "2.13.0rc2"):
        assert not has_quick_product(other), other
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    assert not has_quick_product("2.13.0")


@pytest.mark.parametrize("quick", [True, False], ids=["oneDNN", "fallback"])
def test_the_operator_is_called_where_it_is_quick_and_nowhere_else(quick: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if quick and not has_quick_product(HERE):
        pytest.skip(f"torch {HERE} takes the fallback; tried: {', '.join(sorted(TORCH_VERSIONS))}")
    calls = []

    class Operators:
        @staticmethod
        def _linear_pointwise(left: torch.Tensor, right: torch.Tensor, *rest: object) -> torch.Tensor:
            calls.append(rest)
            return left @ right.T

    monkeypatch.setattr(MODULE, "_QUICK", quick)
    monkeypatch.setattr(torch.ops, "mkldnn", Operators)
    left, right = torch.randn(9, 5), torch.randn(7, 5)
    product(left, right)
    assert len(calls) == quick
    product(left.double(), right.double())
    assert len(calls) == quick, "double precision never takes it"


def test_both_ways_agree_to_rounding_at_the_size_of_an_output_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_quick_product(HERE):
        pytest.skip(f"torch {HERE} takes the fallback; tried: {', '.join(sorted(TORCH_VERSIONS))}")
    torch.manual_seed(2)
    left, right = torch.randn(3000, 650), torch.randn(320, 650)
    exact, size = left.double() @ right.double().T, left.double().abs() @ right.double().abs().T
    for quick in (True, False):
        monkeypatch.setattr(MODULE, "_QUICK", quick)
        error = (product(left, right).double() - exact).abs() / size
        assert float(error.max()) < 8 * torch.finfo(torch.float32).eps
