package dev.addend;

import java.util.ArrayList;
import java.util.List;

/** Calls of operators whose results are known. */
abstract class OperatorCalls {
  private final Context context;

  OperatorCalls(Context context) {
    this.context = context;
  }

  final Composition composition(String op, Named... arguments) {
    try (Results results = Arguments.call(context, op, (Object[]) arguments)) {
      return results.composition(0);
    }
  }

  final List<Composition> compositions(String op, Named... arguments) {
    try (Results results = Arguments.call(context, op, (Object[]) arguments)) {
      final List<Composition> compositions = new ArrayList<>();
      for (int index = 0; index < results.size(); index++) {
        compositions.add(results.composition(index));
      }
      return compositions;
    }
  }

  final Tensor tensor(String op, Named... arguments) {
    try (Results results = Arguments.call(context, op, (Object[]) arguments)) {
      return results.tensor(0);
    }
  }

  final ValuesAndIndices valuesAndIndices(String op, Named... arguments) {
    try (Results results = Arguments.call(context, op, (Object[]) arguments)) {
      return new ValuesAndIndices(results.composition(0), results.tensor(1));
    }
  }
}
