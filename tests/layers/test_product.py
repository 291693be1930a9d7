"""The quick product equals ``@`` for every layout that it may be given."""

from __future__ import annotations

import pytest
import torch

from sememekit.layers import product


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_equals_the_plain_product_for_any_strides(dtype: torch.dtype) -> None:
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
