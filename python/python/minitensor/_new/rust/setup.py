"""Builds a wheel that contains the library. The library is not an extension module, so the wheel fits every Python."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

FILE = {"win32": "my_ops.dll", "darwin": "libmy_ops.dylib"}.get(sys.platform, "libmy_ops.so")


class Build(build_py):
    def run(self):
        super().run()
        subprocess.run(["cargo", "build", "--release"], check=True)
        if not self.editable_mode:
            built = Path(os.environ.get("CARGO_TARGET_DIR") or "target") / "release" / FILE
            shutil.copy(built, Path(self.build_lib) / "my_ops")


class Wheel(bdist_wheel):
    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


class Platform(Distribution):
    def has_ext_modules(self):
        return True


version = tomllib.loads(Path("Cargo.toml").read_text())["package"]["version"]
setup(version=version, distclass=Platform, cmdclass={"build_py": Build, "bdist_wheel": Wheel})
