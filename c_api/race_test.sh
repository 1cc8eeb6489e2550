#!/bin/sh
# race_test.sh: under --config=tsan, threads_test is clean, and a race that is seeded inside a rule is reported.
set -eu
program=c_api/threads_test
if ! nm -D "$program" 2>/dev/null | grep -q __tsan_; then
  echo "skipped: this build has no ThreadSanitizer (--config=tsan)"
  exit 0
fi
TSAN_OPTIONS="${TSAN_OPTIONS:-} exitcode=66"
export TSAN_OPTIONS
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! "$program" >"$log" 2>&1; then
  cat "$log"
  echo "FAILED: there is a race" >&2
  exit 1
fi
if ADDEND_RACE=1 "$program" --gtest_filter='*RulesRunOnSeveralThreadsAtOnce*' >"$log" 2>&1 ||
  ! grep -q 'ThreadSanitizer: data race' "$log" || ! grep -q racy_calls "$log"; then
  cat "$log"
  echo "FAILED: the race that was seeded was not reported" >&2
  exit 1
fi
echo "ok: no race but the one that was seeded"
