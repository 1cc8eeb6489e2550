#!/bin/sh
# beside_test.sh PROGRAM FOREIGN: beside another LibTorch a program catches an exception that names it, and lives.
set -eu
foreign=$(realpath "$2")
said=$("$1" "$foreign") || { echo "FAILED: the program ended with $?: $said" >&2; exit 1; }
case $said in
  "this process has loaded LibTorch 0.99.0 ($foreign), and Addend "*) echo "ok: $said" ;;
  *) echo "FAILED: $said" >&2; exit 1 ;;
esac
# The configuration that reports of problems need is printed too.
for line in "Addend " "  opened: none" "  refused: this process has loaded LibTorch 0.99.0 ($foreign)" "LibTorch 0.99.0" \
    "  library: $foreign" ".NET " "  assembly: "; do
  case $said in
    *"
$line"*) ;;
    *) echo "FAILED: \"$line\" begins no line of: $said" >&2; exit 1 ;;
  esac
done
