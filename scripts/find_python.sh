# scripts/release and .ci/full source this file.

# VERSION: prints the path of this Python, of PATH or of pyenv, whose `python3.12` fails unless the version is chosen.
find_python() {
    local candidate
    for candidate in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python; do
        "$candidate" -c "import ensurepip" 2>/dev/null && { "$candidate" -c "import sys; print(sys.executable)"; return; }
    done
    return 1
}
