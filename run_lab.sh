#!/bin/sh
# Set up .venv if it is missing or the requirements changed, then run the command line.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
caller=$(pwd)
cd "$here"
py=.venv/bin/python

# No Python of the lab imports from the caller's folder, or from what the caller's PYTHONPATH names.
unset PYTHONHOME PYTHONSTARTUP
PYTHONPATH=$here
export PYTHONPATH

say() { printf '%s\n' "$*" >&2; }

# A kit (pack-offline, lab/kit.py) has the packages beside the lab. Then no network is used.
kit=""
if [ -f kit/about ]; then
    kit="--no-index --find-links kit/wheels"
fi
of_kit() { sed -n "s/^$1 //p" kit/about; }

find_python() {
    for each in python3.11 python3.12 python3.13 python3; do
        if "$each" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            command -v "$each"
            return
        fi
    done
    say "set up .venv: found no Python 3.11 or newer with the venv module. Try: sudo apt install python3 python3-venv"
    exit 3
}

find_python_of_kit() {
    machine=$(of_kit machine)
    version=$(of_kit python)
    if [ "$(uname -sm)" != "$machine" ]; then
        say "set up .venv: this kit is for $machine, and this machine is $(uname -sm). Pack a kit on a machine like this one"
        exit 3
    fi
    for each in "python$version" python3; do
        if "$each" -c 'import sys, venv; sys.exit("%d.%d" % sys.version_info[:2] != sys.argv[1])' "$version" >/dev/null 2>&1; then
            command -v "$each"
            return
        fi
    done
    say "set up .venv: this kit is for Python $version, which is not here. Pack a kit with a Python that this machine has"
    exit 3
}

# Under sudo, run as the user who called sudo, so that .venv belongs to that user.
as_caller() {
    if [ "$(id -u)" = 0 ] && [ -n "${SUDO_UID:-}" ] && command -v sudo >/dev/null 2>&1; then
        sudo -H -u "#$SUDO_UID" -- "$@"
    else
        "$@"
    fi
}

# Under sudo, Python writes no compiled files: they would belong to root, among those of the user.
if [ "$(id -u)" = 0 ] && [ -n "${SUDO_UID:-}" ]; then
    export PYTHONDONTWRITEBYTECODE=1
fi

make_venv() {
    if [ -n "$kit" ]; then
        found=$(find_python_of_kit)
        say "setting up .venv from the kit ..."
        pip=$(echo kit/wheels/pip-*.whl)/pip # Python runs it from the wheel: Debian's Python has none
        # shellcheck disable=SC2086
        as_caller "$found" -m venv --without-pip .venv &&
            as_caller "$py" "$pip" install --quiet --disable-pip-version-check $kit --require-hashes -r kit/pip.txt ||
            { say "set up .venv: it failed, see above. Unpack the kit again"; exit 3; }
        return
    fi
    found=$(find_python)
    say "setting up .venv ..."
    as_caller "$found" -m venv .venv || { say "set up .venv: python -m venv failed. Try: sudo apt install python3-venv"; exit 3; }
}

# pip refuses a package whose hash is not in the lock file.
pip_install() {
    # shellcheck disable=SC2086
    as_caller "$py" -m pip install --quiet --disable-pip-version-check $kit --require-hashes "$@"
}

is_installed() {
    [ -x "$py" ] && [ "$(cat "$stamp" 2>/dev/null || :)" = "$wanted" ]
}

# install STAMP FILE: install the packages of the lock file FILE, unless the stamp is of this FILE.
# Of two commands that start together, one installs and the other waits (a lock on this folder).
install() {
    stamp=.venv/$1.stamp
    shift
    wanted=$(cat "$@" | cksum)
    if is_installed; then
        return
    fi
    if command -v flock >/dev/null 2>&1; then
        exec 9<. && flock 9
    fi
    if ! is_installed; then
        install_now "$@"
    fi
    exec 9<&-
}

install_now() {
    if ! "$py" -c 'import pip' >/dev/null 2>&1; then
        make_venv
    fi
    options=""
    for file in "$@"; do options="$options -r $file"; done
    say "installing packages ..."
    # shellcheck disable=SC2086
    if ! pip_install $options; then
        if [ -n "$kit" ]; then
            say "install $*: pip failed, see above. The kit has what ./run_lab.sh and a class need. With a network, move the folder kit away and run the same command again"
        else
            say "install $*: pip failed. Check the network connection and run the same command again"
        fi
        exit 3
    fi
    as_caller sh -c 'printf "%s\n" "$1" >"$2"' sh "$wanted" "$stamp"
}

# Install the simulator's compiler, then compile the simulator.
fast() {
    pip_install -r locks/fast.txt &&
        as_caller env PYTHONPATH="$here" "$py" -m lab.engines.sim.compiler
}

# Do this in the background, unless it is done. Without a network, the simulator stays interpreted.
fast_behind_the_page() {
    if [ "${MULTIPATH_LAB_FAST:-yes}" = no ] || "$py" -c 'import importlib.metadata as m; m.version("numba")' >/dev/null 2>&1; then
        return
    fi
    (
        fast >.venv/fast.log 2>&1 || :
        rm -f .venv/fast.pid
    ) </dev/null >/dev/null 2>&1 &
    echo $! >.venv/fast.pid
}

install locked locks/run.txt
case "${1:-}" in
"" | --port | --port=* | --no-browser | --no-demo | --with | --with=*)
    set -- up "$@"
    fast_behind_the_page
    ;;
up | class)
    fast_behind_the_page
    ;;
fast)
    fast || { say "install locks/fast.txt: it failed. Check the network connection and run the same command again"; exit 3; }
    exit 0
    ;;
test)
    shift
    install locked_dev locks/dev.txt
    if [ $# -gt 0 ]; then
        exec "$py" -m pytest "$@"
    fi
    # Tests of the emulation measure rates, so they run alone; all other tests run in parallel.
    status=0
    env -u MULTIPATH_LAB_VM_DILATION "$py" -m pytest -m "not emulation and not long and not oracle" --numprocesses=auto --dist=loadfile --no-loadscope-reorder --durations=25 || status=$?
    emulation=0
    "$py" -m pytest -m "emulation and not long" --durations=15 || emulation=$?
    case $emulation in # tests/emulation_failures.py
    75)
        say "the kernel of an emulated virtual machine panicked: the tests that failed run once more"
        ;;
    76)
        say "this machine is too slow for some tests: those that failed run once more, with slower clocks in the virtual machine"
        ;;
    esac
    if [ "$emulation" = 75 ] || [ "$emulation" = 76 ]; then
        emulation=0
        # after a panic, too: others may have failed because the machine is slow
        [ "${MULTIPATH_LAB_VM_DILATION:-}" = auto ] || export MULTIPATH_LAB_VM_DILATION=$((2 * ${MULTIPATH_LAB_VM_DILATION:-1}))
        LAB_EMULATION_MINUTES="" "$py" -m pytest -m "emulation and not long" --last-failed || emulation=$?
    fi
    [ "$emulation" = 0 ] || status=$emulation
    say "not in this command: the tests marked long or oracle, some hours of them: .ci/night runs them"
    exit "$status"
    ;;
torture)
    shift
    install locked_dev locks/dev.txt
    export PYTHONPATH="$here:$here/tests"
    exec "$py" -m torture "$@"
    ;;
audit)
    install locked_dev locks/dev.txt
    ;;
lint)
    install locked_dev locks/dev.txt
    "$py" -m ruff format --check .
    "$py" -m ruff check .
    exec "$py" -m mypy lab controller dashboard papers bench vm
    ;;
esac
cd "$caller"
exec "$here/$py" -P -m lab "$@"
