"""Compiles the modules of `pointstamp/compiled.py`, where Cython and a C compiler are.

A compiler is `CC`, or that of this Python, or else ziglang from the package registry. What
was compiled in place already, of these very sources, is taken as it is, unless `CC` names
another compiler. `POINTSTAMP_COMPILED=0` makes the wheel that runs everywhere, `py3-none-any`.

Everything else about the package is in `pyproject.toml`. If anything here fails, the
package is built without: it runs as it is, slower.
"""

from __future__ import annotations

import os
import runpy
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
PACKAGE: dict[str, Any] = runpy.run_path(str(ROOT / "pointstamp" / "compiled.py"))

DIRECTIVES = {
    "language_level": 3,
    # Types are declared in .pxd files; annotations are for readers and for mypy.
    "annotation_typing": False,
    "binding": True,
    # With the lines of Python in it, C takes an eighth longer to compile.
    "emit_code_comments": False,
}

# Loops do not look whether an index is in range. `make bounds` builds those, and only those,
# that do, into a folder of their own, and tests them.
BOUNDS = "POINTSTAMP_BOUNDS"
LOOP_DIRECTIVES = {
    **DIRECTIVES,
    "boundscheck": os.environ.get(BOUNDS) == "1",
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
    "show_performance_hints": False,
}

# Those who only test have the modules that are not loops compiled in half of the time.
OPTIMIZATION = os.environ.get("POINTSTAMP_OPTIMIZATION", "-O2")

FLAGS = [
    OPTIMIZATION,
    "-g0",
    # Cython hands methods on as functions of another type where a declaration misleads it:
    # undefined behaviour, which clang and newer gcc refuse by themselves.
    "-Werror=incompatible-pointer-types",
    "-Wno-sign-compare",
]
# Sums are the same on every machine: no product is added without being rounded.
LOOP_FLAGS = [*FLAGS, "-O3", "-ffp-contract=off"]
# Nothing but tests runs what `make bounds` builds, and those are short: most is to compile.
BOUNDS_FLAGS = [*FLAGS, "-O1"]


def at_hand() -> bool:
    """Whether all was compiled in place already, of these sources, and may be copied."""
    digest = ROOT / "pointstamp" / PACKAGE["DIGEST"]
    return (
        "CC" not in os.environ
        and BOUNDS not in os.environ
        and digest.exists()
        and digest.read_text().strip() == PACKAGE["digest"]()
        and len(PACKAGE["libraries"]()) == len(PACKAGE["LIBRARIES"])
    )


AT_HAND = at_hand()
"""Looked at once: what is to be built is removed first."""

BEGUN_WITH = PACKAGE["digest"]()
"""Of the sources as they are before any is read by Cython."""


def _relative(module: str) -> str:
    return str(PACKAGE["source"](module).relative_to(ROOT))


def headers_of_numpy() -> Path | None:
    """Where NumPy's headers are; None without it.

    It is not imported: where a wheel is built for another machine, it is that machine's.
    """
    found = find_spec("numpy")
    places = (found and found.submodule_search_locations) or []
    folders = (Path(place, "_core", "include") for place in places)
    return next(filter(Path.is_dir, folders), None)


def extensions() -> list[Extension]:
    """One for each module; none where Cython is missing, or was told not to."""
    if os.environ.get(PACKAGE["SWITCH"]) == "0":
        return []
    if AT_HAND:
        return [
            *(Extension(module, [_relative(module)]) for module in PACKAGE["COMPILED"]),
            Extension(PACKAGE["SHARED"], []),
        ]
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None and not use_zig():
        print(f"setup: no C compiler ({compiler}), so the core runs as it is", file=sys.stderr)
        return []
    header = Path(sysconfig.get_path("include"), "Python.h")
    if not header.exists():
        print(f"setup: no {header}, so the core runs as it is", file=sys.stderr)
        return []
    try:
        import Cython.Build.SharedModule  # noqa: F401  (what makes SHARED: older ones have none)
        from Cython.Compiler.Errors import CompileError
    except ImportError:
        print("setup: no Cython 3.3 or newer, so the core runs as it is", file=sys.stderr)
        return []
    if headers_of_numpy() is None:
        print("setup: no NumPy, so the core runs as it is", file=sys.stderr)
        return []
    try:
        if os.environ.get(BOUNDS) == "1":
            return _generated(PACKAGE["LOOPS"], BOUNDS_FLAGS, LOOP_DIRECTIVES)
        # Each call of a kernel goes through it, with each array.
        shared = Extension(PACKAGE["SHARED"], [], extra_compile_args=[*FLAGS, "-O2"])
        return [
            *_generated(PACKAGE["MODULES"], FLAGS, DIRECTIVES, shared),
            *_generated(PACKAGE["LOOPS"], LOOP_FLAGS, LOOP_DIRECTIVES),
        ]
    except CompileError as error:
        print(f"setup: the core runs as it is, for Cython refuses {error}", file=sys.stderr)
        return []


def _generated(
    modules: Sequence[str], flags: list[str], directives: dict[str, Any], *others: Extension
) -> list[Extension]:
    """The modules with their C; and what Cython makes by itself."""
    from Cython.Build import cythonize

    headers = [str(headers_of_numpy())]  # loops make its arrays, and read them, by its own C
    wanted = [
        Extension(module, [_relative(module)], include_dirs=headers, extra_compile_args=flags)
        for module in modules
    ]
    folder = "build/cython_bounds" if os.environ.get(BOUNDS) == "1" else "build/cython"
    return list(
        cythonize(
            [*wanted, *others],
            compiler_directives=directives,
            # Views of memory are half of the C of a module that has them.
            shared_utility_qualified_name=PACKAGE["SHARED"],
            build_dir=folder,
            quiet=True,
            # Processes that are forked need not import this file again.
            nthreads=(os.cpu_count() or 1) if sys.version_info < (3, 14) else 0,
        )
    )


def use_zig() -> bool:
    """Have ziglang compile, where it is installed; whether it is."""
    if find_spec("ziglang") is None:
        return False
    os.environ["CC"] = f"{sys.executable} -m ziglang cc"
    os.environ["LDSHARED"] = f"{sys.executable} -m ziglang cc -shared"
    return True


class BuildAllOrNone(build_ext):
    """Compiles all modules, or goes on as if there were none to compile."""

    def finalize_options(self) -> None:
        """Use all processors."""
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def run(self) -> None:
        """Build, and write down of what."""
        package = ROOT if self.inplace or self.editable_mode else Path(self.build_lib)
        package = package / "pointstamp"
        written = package / PACKAGE["DIGEST"]
        if self.extensions and BOUNDS not in os.environ:
            written.unlink(missing_ok=True)
        if self.extensions and not AT_HAND:
            print("setup: compiling the core (a minute the first time)", file=sys.stderr)
        try:
            super().run()
        except (Exception, SystemExit) as error:  # noqa: BLE001  (whatever it is, we go on)
            print(f"setup: the core runs as it is, for compiling failed: {error}", file=sys.stderr)
            for library in PACKAGE["libraries"](package):
                library.unlink()
            self.extensions = []
            return
        if self.inplace:
            # A library of a module that is not compiled any more would be imported in its place.
            built = {Path(self.get_ext_fullpath(each.name)).resolve() for each in self.extensions}
            suffix = Path(self.get_ext_filename("_")).name.removeprefix("_")
            for library in package.rglob(f"*{suffix}"):
                if built and library.resolve() not in built:
                    library.unlink()
        if self.extensions and BOUNDS not in os.environ:
            suffix = Path(self.get_ext_filename("_")).name.removeprefix("_")
            if PACKAGE["digest"]() != BEGUN_WITH:
                print(
                    "setup: the core runs as it is, for sources changed while they were compiled: "
                    "compile again",
                    file=sys.stderr,
                )
                return
            written.write_text(PACKAGE["digest"](suffix=suffix) + "\n")

    def build_extension(self, ext: Extension) -> None:
        """Compile a module, or copy its library."""
        if not AT_HAND:
            super().build_extension(ext)
            return
        target = Path(self.get_ext_fullpath(ext.name)).resolve()
        source = PACKAGE["source"](ext.name).with_name(target.name)
        if source != target:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)

    def get_outputs(self) -> list[str]:
        """The digest belongs to them."""
        outputs = super().get_outputs()
        if self.extensions and not self.inplace:
            outputs.append(str(Path(self.build_lib) / "pointstamp" / PACKAGE["DIGEST"]))
        return list(outputs)


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildAllOrNone})
