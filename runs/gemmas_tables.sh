# The loop of both tables; the scripts that source it set MODEL and TABLE.
# Two rounds, four roles and FinalRefer are what `vanilla` is. Temperature and length are ours: the published
# code computes 0.2 and 1000 and sends neither.
DATA="${DATA:?the folder of the benchmarks}"
OUT="${OUT:-out}"
BASE_URL="${BASE_URL:-http://localhost:8000/v1}"
WIRINGS="${WIRINGS:-wirings}"

play() { # benchmark, folder, name of the row, further options
  local benchmark="$1" folder="$2" row="$3"
  shift 3
  counterpoint run "$benchmark" --data "$DATA/$folder" --model "$MODEL" --base-url "$BASE_URL" \
    --temperature 0.2 --max-tokens 1000 --threads 40 -o "$OUT/$TABLE-$benchmark-$row" --format md "$@"
}

for pair in gsm8k:gsm8k aqua:AQuA multiarith:MultiArith svamp:SVAMP mmlu:MMLU; do
  benchmark="${pair%%:*}" folder="${pair#*:}"
  play "$benchmark" "$folder" vanilla --system vanilla "$@"
  play "$benchmark" "$folder" vanilla-mirror --system vanilla-mirror "$@"
  for method in agentprune agentdropout gdesigner; do
    wiring="$WIRINGS/$method-$benchmark.json"
    if [ -f "$wiring" ]; then
      play "$benchmark" "$folder" "$method" --system vanilla --wiring "$wiring" "$@"
    fi
  done
done
