#!/bin/sh
# no_names_test.sh FILE...: what is special about an operator stands where its rule is registered, or in OperatorTraits:
# the linearizer goes by that, and by no operator's name.
if grep -n '"[a-z_]*::' "$@" | grep -v '"addend::'; then
  echo "core/linearize knows operators by their names; say it in their rules (core/rules/rule.h)" >&2
  exit 1
fi
