"""`examples/demo.py` runs to its end."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_demo_trains_its_network(tmp_path):
    demo = tmp_path / "examples" / "demo.py"
    demo.parent.mkdir()
    demo.write_text((ROOT / "examples" / "demo.py").read_text())
    (tmp_path / "ops").symlink_to(ROOT / "ops")
    run = subprocess.run([sys.executable, demo], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    accuracy = re.search(r"([\d.]+)% of the test images", run.stdout)
    assert accuracy and float(accuracy[1]) > 95
    assert (tmp_path / "out" / "loss.png").stat().st_size > 0
