#!/usr/bin/env bash
# GEMMAS (EMNLP 2025, Industry Track), Table 2: Qwen2.5-7B-Instruct. See runs/README.md.
#
# Printed cells that a run can be held against:
#
#   GSM8K, the two systems of the abstract: accuracy .8563 and .8742, IDS .39 and .44, UPR .40 and .08
#   (2.1 %, 12.8 % and 80 % are relative changes of these).
#   SVAMP, AgentPrune: UPR .97 at accuracy .87; Vanilla: UPR .42.
#   MultiArith: UPR .00 for two methods.
#   MMLU, over all methods and both tables: UPR .43 to .70 at accuracy .53 to .78.
#
# Questions behind the printed accuracies: 1280, 240, 160, 280, 720 (see gemmas_table1.sh).
set -euo pipefail
MODEL="${MODEL:-Qwen/Qwen2.5-7B-Instruct}"
TABLE="${TABLE:-table2}"
source "$(dirname "$0")/gemmas_tables.sh"
