#!/usr/bin/env bash
# Builds the site of the documentation into site/, and fails where a link or a docstring is wrong. Arguments go to mkdocs:
#   bash scripts/docs.sh
#   bash scripts/docs.sh --site-dir /tmp/site
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/environment.sh
prepare_environment '[dev]'
export NO_MKDOCS_2_WARNING=1
exec .venv/bin/python -m mkdocs build --strict --config-file .ci/mkdocs.yml "$@"
