#!/usr/bin/env bash
# Installs Chromium for the tests of the page, and the font Inter for its pictures, on Debian or
# Ubuntu as root; elsewhere says what to do, and fails. Where a Chromium or Chrome is on PATH it does
# nothing.
set -euo pipefail
for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null; then
    exit 0
  fi
done
if ! command -v apt-get >/dev/null || [ "$(id -u)" -ne 0 ]; then
  echo "install_chromium: expected apt-get and root; install Chromium or Chrome by hand" >&2
  exit 1
fi
apt-get -qq update
DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends chromium fonts-inter \
  >/dev/null
