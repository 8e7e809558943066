"""The README's generated tables are current; its examples run as doctests."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_table_of_metrics_is_current():
    script = [sys.executable, str(ROOT / "scripts" / "readme_metrics.py"), "--check"]
    result = subprocess.run(script, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_each_command_is_one_line():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for marker in ("<!-- demo command -->", "<!-- test command -->"):
        block = text.split(marker)[1].split("```")[1]
        assert len(block.removeprefix("sh").strip().splitlines()) == 1
