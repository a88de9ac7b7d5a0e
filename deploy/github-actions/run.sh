#!/usr/bin/env bash
# A step of the action: runs a scenario, and ends with the exit code of loadgen.
#
# Environment variables: SCENARIO, ARGS (one argument per line), AGAINST (empty: one run instead of a comparison), OUT;
# GITHUB_STEP_SUMMARY and GITHUB_OUTPUT are set by the runner. Outputs: verdict, exit-code, report, run.
set -euo pipefail

if [[ -n $AGAINST ]]; then
  command=(loadgen ab "$SCENARIO" --a "$AGAINST")
else
  command=(loadgen run "$SCENARIO")
fi
command+=(--out "$OUT" --summary "$GITHUB_STEP_SUMMARY")
while IFS= read -r line; do
  line=${line%$'\r'}
  if [[ -n $line ]]; then
    command+=("$line")
  fi
done <<<"$ARGS"

code=0
"${command[@]}" || code=$?

case $code in
0) verdict=pass ;;
1) verdict=fail ;;
2) verdict=usage ;;
3) verdict=undecided ;;
*) verdict=environment ;;
esac
report=$OUT/report.html
[[ -n $AGAINST ]] && report=$OUT/ab.html
[[ -e $report ]] || report=
{
  echo "verdict=$verdict"
  echo "exit-code=$code"
  echo "report=$report"
  echo "run=$OUT"
} >>"$GITHUB_OUTPUT"
exit "$code"
