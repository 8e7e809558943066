# The other scripts here source this one. It goes to a copy of the project in a temporary folder and removes it at the
# end, so nothing installed or built in the project can help a test pass. It sets `root` (the project) and `work` (the
# temporary folder, also for other files).

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ -d "$root/../shared/data" ]; then
    FASTREC_TEST_DATA=$(cd "$root/../shared/data" && pwd)
    export FASTREC_TEST_DATA
fi

# The README says `python`; some systems only have `python3`.
if ! command -v python >/dev/null; then
    mkdir "$work/bin"
    ln -s "$(command -v python3)" "$work/bin/python"
    PATH=$work/bin:$PATH
fi

mkdir "$work/fastrec"
tar -C "$root" --exclude=./.git --exclude=./.venv --exclude=__pycache__ --exclude='./.*_cache' -cf - . |
    tar -C "$work/fastrec" -xf -
cd "$work/fastrec"
