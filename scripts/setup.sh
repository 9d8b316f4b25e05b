#!/bin/sh
# Make the virtual environment given as $1 and install into it what
# requirements.lock names, then this checkout (editable). Needs a Python >= 3.11
# and nothing else; what is installed already is left as it is.
set -eu

venv=$1
python=$venv/bin/python
is_new_enough='import sys; sys.exit(sys.version_info < (3, 11))'

say() { echo "setup: $*" >&2; }

# The first Python that starts and is new enough. Asking for the version also
# sorts out shims (pyenv, asdf) that are on the PATH and lead nowhere.
find_python() {
    for candidate in python3 python3.13 python3.12 python3.11 python; do
        if "$candidate" -c "$is_new_enough" >/dev/null 2>&1; then
            command -v "$candidate"
            return
        fi
    done
    say "no Python 3.11 or newer found (looked for python3, python3.13, python3.12,"
    say "python3.11 and python on the PATH); install one and run make again"
    return 1
}

# Some distributions ship Python without ensurepip. Then another pip fills the
# environment: one that the base Python has, or the one that virtualenv or uv brings.
make_venv() {
    base=$(find_python)
    say "making $venv with $("$base" --version)"
    "$base" -m venv --clear "$venv" 2>/dev/null && return
    "$base" -m venv --clear --without-pip "$venv" 2>/dev/null &&
        "$base" -m pip --python "$python" install --quiet pip 2>/dev/null && return
    "$base" -m virtualenv --quiet --clear "$venv" 2>/dev/null && return
    uv venv --quiet --clear --seed --python "$base" "$venv" 2>/dev/null && return
    rm -rf "$venv"
    say "$base can make no virtual environment with pip in it; install its venv"
    say "module (Debian, Ubuntu: apt-get install python3-venv) and run make again"
    return 1
}

usable() {
    "$python" -c "$is_new_enough" >/dev/null 2>&1 && "$python" -m pip --version >/dev/null 2>&1
}

# What the lock says of the packages named, for each version of Python.
of_lock() {
    for name; do
        awk -v begin="$name==" 'index($0, begin) == 1 { on = 1 } on { print } !/\\$/ { on = 0 }' \
            requirements.lock
    done
}

# What $1 names, as the lock has it. uv installs all of it in a fifth of pip's time; it is in the
# lock itself, and where it cannot reach what pip can, pip goes on.
install() {
    "$python" -m pip install -qq --disable-pip-version-check --require-hashes -r "$1"
}

install_by_uv() {
    "$venv/bin/uv" pip install --quiet --no-config --python "$python" \
        --require-hashes -r requirements.lock 2>/dev/null
}

has_compiler() { command -v "${CC:-cc}" >/dev/null || command -v gcc >/dev/null; }
has_headers='import pathlib, sysconfig, sys
sys.exit(not pathlib.Path(sysconfig.get_path("include"), "Python.h").exists())'

# The core is compiled while most is fetched: for that three packages are enough, and `make` finds it
# done. In the foreground, where an interrupt ends it.
install_lock() {
    first=$venv/first.lock  # in there, so that an interrupt leaves nothing elsewhere
    of_lock uv cython setuptools numpy >"$first"
    if install "$first"; then
        install_by_uv &
        installing=$!
        trap 'kill "$installing" 2>/dev/null || true' EXIT
        if has_compiler && "$python" -c "$has_headers"; then
            "$python" setup.py --quiet build_ext --inplace || true
        fi
        wait "$installing" || install requirements.lock
        trap - EXIT
    else
        install requirements.lock
    fi
    rm -f "$first"
}

usable || make_venv
say "installing requirements.lock (a minute or two the first time)"
install_lock
# A C compiler from the package registry, where the machine has none: setup.py finds it.
if ! has_compiler; then
    "$venv/bin/uv" pip install --quiet --no-config --python "$python" ziglang ||
        say "no C compiler, and ziglang cannot be installed: the core will not be compiled"
fi
POINTSTAMP_COMPILED=0 "$python" -m pip install -qq --disable-pip-version-check --no-deps \
    --no-build-isolation --editable .
say "done"
