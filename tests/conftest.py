"""Helpers assert, too: pytest shows what their assertions compared."""

import pytest

pytest.register_assert_rewrite("support", "fuzz")
