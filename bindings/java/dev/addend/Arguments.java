package dev.addend;

import java.util.Arrays;
import java.util.List;

/** Calls of operators by name, with arguments of any type. */
final class Arguments implements AutoCloseable {
  private final Borrow borrow = new Borrow();
  private final long arguments = Out.handle(AddendNative::addend_arguments_create);

  private Arguments(Object[] values) {
    try {
      for (Object value : values) {
        if (value instanceof Named) {
          add(((Named) value).name(), ((Named) value).value());
        } else {
          add(null, value);
        }
      }
    } catch (RuntimeException | Error e) {
      close();
      throw e;
    }
  }

  static Results call(Context context, String op, Object... values) {
    return Thrown.run(
        () -> new Results(call(context, values, (c, a, out) -> AddendNative.addend_call(c, op, a, out))));
  }

  static Composition callShapley(String op, Object... values) {
    return new Composition(call(null, values, (c, a, out) -> AddendNative.addend_call_shapley(op, a, out)));
  }

  @FunctionalInterface
  private interface NativeCall {
    void run(long context, long arguments, long[] out);
  }

  private static long call(Context context, Object[] values, NativeCall call) {
    try (Borrow borrow = new Borrow(); Arguments arguments = new Arguments(values)) {
      final long c = borrow.of(context);
      return Out.handle(out -> call.run(c, arguments.arguments, out));
    }
  }

  @Override
  public void close() {
    AddendNative.addend_arguments_release(arguments);
    borrow.close();
  }

  private void add(String name, Object value) {
    if (value == null) {
      AddendNative.addend_arguments_add_none(arguments, name);
    } else if (value instanceof Composition) {
      AddendNative.addend_arguments_add_composition(arguments, name, borrow.of((Composition) value));
    } else if (value instanceof Tensor) {
      AddendNative.addend_arguments_add_tensor(arguments, name, borrow.of((Tensor) value));
    } else if (value instanceof Double || value instanceof Float) {
      AddendNative.addend_arguments_add_f64(arguments, name, ((Number) value).doubleValue());
    } else if (value instanceof Long || value instanceof Integer || value instanceof Short || value instanceof Byte) {
      AddendNative.addend_arguments_add_i64(arguments, name, ((Number) value).longValue());
    } else if (value instanceof Boolean) {
      AddendNative.addend_arguments_add_bool(arguments, name, (Boolean) value ? 1 : 0);
    } else if (value instanceof String) {
      AddendNative.addend_arguments_add_str(arguments, name, (String) value);
    } else if (value instanceof DType) {
      AddendNative.addend_arguments_add_dtype(arguments, name, ((DType) value).number());
    } else if (value instanceof long[]) {
      AddendNative.addend_arguments_add_i64s(arguments, name, (long[]) value);
    } else if (value instanceof int[]) {
      AddendNative.addend_arguments_add_i64s(arguments, name, Arrays.stream((int[]) value).asLongStream().toArray());
    } else if (value instanceof List) {
      AddendNative.addend_arguments_begin_list(arguments, name);
      for (Object element : (List<?>) value) {
        add(null, element);
      }
      AddendNative.addend_arguments_end_list(arguments);
    } else {
      throw new IllegalArgumentException("operators take no " + value.getClass().getName()
          + (name == null ? "" : " as " + name)
          + ": pass a Composition, Tensor, number, boolean, String, DType, long[], int[], List or null");
    }
  }
}
