# Sourced by quickstart.sh and test.sh, in the repository root.

# Makes .venv with the tested versions, once for every change of the requirements.
#   prepare_environment          the package alone
#   prepare_environment '[dev]'  with all extras
prepare_environment() {
    local extras=${1-}
    local python=${PYTHON:-python3} requirements=(pyproject.toml scripts/constraints.txt) stamp=.venv/requirements.stamp
    local wanted
    wanted="$PWD $(cat "${requirements[@]}" | cksum)"
    # One that has all extras will do where none is asked for.
    case "$(cat "$stamp" 2>/dev/null)" in "$wanted $extras" | "$wanted [dev]") return ;; esac
    if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
        check_python "$python"
        echo "==> making .venv with $("$python" --version)"
        "$python" -m venv --clear .venv
    fi
    export PIP_DISABLE_PIP_VERSION_CHECK=1
    echo "==> installing the tested versions (scripts/constraints.txt); this takes minutes, once"
    # torch first and alone: it decides the size of the download, and a build that the machine offers is kept.
    .venv/bin/python -m pip install --quiet --constraint scripts/constraints.txt torch
    .venv/bin/python -m pip install --quiet --constraint scripts/constraints.txt --editable ".$extras"
    echo "$wanted $extras" >"$stamp"
}

check_python() {
    if ! command -v "$1" >/dev/null; then
        echo "error: $1 not found; set PYTHON to a Python 3.11 or newer" >&2
        exit 1
    fi
    if ! "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
        echo "error: hf_paraphrase needs Python 3.11 or newer, but $1 is $("$1" --version 2>&1); set PYTHON to a newer one" >&2
        exit 1
    fi
}
