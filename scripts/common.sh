# shellcheck shell=bash
# Sourced by demo.sh and test.sh: install what is missing, configure, build.
#
#   BUILD_DIR  where to build (default: build, in the repository)
#   MLIR_DIR   <prefix>/lib/cmake/mlir of an LLVM 22.1 to use in place of the Debian packages
#   PYTHON     the Python to use together with MLIR_DIR (default: python3)

set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$(realpath -m "${BUILD_DIR:-$root/build}")
logs=$build/logs
cd "$root"

tools=(ccache cmake libmimalloc-dev ninja-build python3 python3-numpy)
llvm=(clang-22 libmlir-22-dev lld-22 llvm-22-dev llvm-22-tools mlir-22-tools)

say() { printf '[%4ds] %s\n' "$SECONDS" "$*"; }

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# logged NAME QUIET COMMAND..: run COMMAND with its output in $logs/NAME.log. Lines that match QUIET are
# shown one in fifteen seconds, as a sign of life; all others at once.
logged() {
  local log=$logs/$1.log quiet=$2
  shift 2
  "$@" </dev/null 2>&1 | tee "$log" | pace "$quiet"
}

pace() {
  local quiet=$1 line last='..' status shown=$SECONDS
  while true; do
    status=0
    IFS= read -r -t 5 line || status=$?
    if ((status > 0 && status <= 128)); then
      [[ -z $line ]] || printf '%s\n' "$line"
      break
    elif ((status == 0)) && [[ ! $line =~ $quiet ]]; then
      printf '%s\n' "$line"
      continue
    elif ((status == 0)); then
      last=${line:0:110}
    fi
    if ((SECONDS - shown >= 15)); then
      say "  $last"
      shown=$SECONDS
    fi
  done
}

# Like logged, for a step that must succeed.
step() {
  logged "$@" || die "$1 failed; mend what $logs/$1.log says and run this script again"
}

as_root() {
  if ((EUID == 0)); then
    env DEBIAN_FRONTEND=noninteractive "$@"
  else
    sudo env DEBIAN_FRONTEND=noninteractive "$@"
  fi
}

install_missing() {
  local want=("${tools[@]}") missing=() name
  local elsewhere='set MLIR_DIR to an LLVM 22.1 as "Elsewhere" in README.md says'
  [[ -n ${MLIR_DIR:-} ]] || want+=("${llvm[@]}")

  if ! command -v apt-get >/dev/null; then
    [[ -n ${MLIR_DIR:-} ]] || die "this system has no apt-get; $elsewhere"
    for name in cmake ninja; do
      command -v "$name" >/dev/null || die "$name is missing; install it and run this script again"
    done
    return
  fi

  for name in "${want[@]}"; do
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null) == installed ]] || missing+=("$name")
  done
  ((${#missing[@]})) || return 0

  ((EUID == 0)) || command -v sudo >/dev/null ||
    die "packages are missing and there is no sudo; as root: apt-get install ${missing[*]}"
  say "installing ${missing[*]}"
  step apt-update '^([^EW]|[EW][^:])' as_root apt-get -q update
  for name in "${missing[@]}"; do
    apt-cache show "$name" >/dev/null 2>&1 ||
      die "apt has no package $name; it is in Debian 12 with its security updates; on other systems $elsewhere"
  done
  step apt-install '^([^EW]|[EW][^:])' \
    as_root apt-get -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 install "${missing[@]}"
}

build_all() {
  local options=()
  mkdir -p "$logs" 2>/dev/null || die "cannot write to $build; set BUILD_DIR to a folder that can be written"
  install_missing

  if [[ -n ${MLIR_DIR:-} ]]; then
    python=$(command -v "${PYTHON:-python3}") || die "${PYTHON:-python3} is missing; set PYTHON to a Python 3 with NumPy"
    options=(--preset default "-DMLIR_DIR=$MLIR_DIR" "-DPython3_EXECUTABLE=$python")
  else
    python=/usr/bin/python3
    options=(--preset release)
  fi
  "$python" -c 'import numpy' 2>/dev/null || die "$python has no NumPy; install it and run this script again"
  if command -v ccache >/dev/null; then
    export CCACHE_SLOPPINESS=pch_defines,time_macros # without them nothing that uses a precompiled header is cached
    export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
  fi

  say "configuring in $build"
  step configure '^(--|Preset |  [A-Za-z0-9_]+=|$)' cmake "${options[@]}" -B "$build"
  say "building"
  step build '^\[' cmake --build "$build"
  PATH=$build/bin:$PATH
  say "built"
}
