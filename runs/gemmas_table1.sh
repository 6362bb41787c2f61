#!/usr/bin/env bash
# GEMMAS (EMNLP 2025, Industry Track), Table 1: Llama-3.1-8B-Instruct. See runs/README.md.
#
# Printed cells that a run can be held against; `?` where the material that we have does not state one.
#
#   benchmark    questions behind the printed accuracy   Vanilla: prompt (completion) tokens a question
#   gsm8k        1280 of 1319                            7,953 (2,469)
#   aqua          240 of  254                            8,917 (?)
#   multiarith    160 of  180                            7,562 (?)
#   svamp         280 of  300                            4,000 (?)
#   mmlu          720 of  748                            4,833 (?)
#
#   The tokens are those of one baseline row; which of the two tables it stands in, we cannot tell.
#   SVAMP, AgentPrune: UPR .96 at accuracy .81; Vanilla: UPR .39.
#   MMLU, over all methods and both tables: UPR .43 to .70 at accuracy .53 to .78.
#   GSM8K: Vanilla is 12 to 13 points of accuracy above AgentPrune and AgentDropout.
#
# The printed accuracies leave the last partial batch of 40 out; these commands play every question.
set -euo pipefail
MODEL="${MODEL:-meta-llama/Llama-3.1-8B-Instruct}"
TABLE="${TABLE:-table1}"
source "$(dirname "$0")/gemmas_tables.sh"
