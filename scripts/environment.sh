# Sourced by the scripts beside it: makes a virtual environment of the checkout's own and leaves all others alone.
# environment FOLDER EXTRA installs watchd into FOLDER, with an extra (".": none), unless that was done already.

environment() {
  local folder=$1 extra=$2 python=${PYTHON:-python3} stamp
  command -v "$python" >/dev/null || { install_package python3 && python=python3; }
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11, 2))' ||
    { echo "watchd needs Python 3.11.2 or later; $python is $("$python" --version). Name another: PYTHON=… $0" >&2; exit 1; }
  if ! [ -x "$folder/bin/pip" ]; then
    rm -rf "$folder"
    # Debian's python3 comes without what venv needs.
    "$python" -m venv "$folder" >/dev/null 2>&1 || { rm -rf "$folder"; install_package python3-venv; "$python" -m venv "$folder"; }
  fi
  stamp=$(cat pyproject.toml watchd/__init__.py | sha256sum)
  if [ "$(cat "$folder/stamp" 2>/dev/null)" != "$stamp" ]; then
    echo "setting up $folder (once) …" >&2
    "$folder/bin/pip" install -q --disable-pip-version-check -e ".$extra"
    echo "$stamp" >"$folder/stamp"
  fi
}

install_package() {
  local root=
  [ "$(id -u)" = 0 ] || root=sudo
  if ! command -v apt-get >/dev/null || { [ -n "$root" ] && ! command -v sudo >/dev/null; }; then
    echo "$1 is missing. As root: apt-get install -y $1" >&2
    exit 1
  fi
  echo "installing $1 …" >&2
  $root apt-get update -qq && $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$1" >/dev/null
}
