package dev.addend;

import java.security.CodeSource;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.Collectors;

/** The library as a whole, and operators by name. */
public final class Addend {
  private Addend() {}

  /**
   * The release.
   *
   * @return for example {@code 0.1.0}
   */
  public static String version() {
    return AddendNative.addend_version();
  }

  /**
   * The LibTorch that the library was built for.
   *
   * @return for example {@code 1.13.1}
   */
  public static String libtorchVersion() {
    return AddendNative.addend_libtorch_version();
  }

  /**
   * Whether this process has loaded the LibTorch that the library was built for, and only that. Whatever computes asks
   * itself.
   *
   * @throws AddendException with both versions or both files where it has not
   */
  public static void checkLibtorch() {
    AddendNative.addend_check_libtorch();
  }

  /**
   * Describes this process for reports of problems: versions, files, LibTorch, threads, devices and the Java virtual
   * machine, and what could not be loaded, with the reason. The lines and their order may change from release to
   * release.
   *
   * @return lines for people
   */
  public static String showConfig() {
    final CodeSource source = Addend.class.getProtectionDomain().getCodeSource();
    return String.join(
        "\n",
        NativeLibrary.config(),
        "Java " + System.getProperty("java.version"),
        "  machine: " + System.getProperty("java.vm.name") + " " + System.getProperty("java.vm.version") + ", "
            + System.getProperty("java.vm.vendor"),
        "  home: " + System.getProperty("java.home"),
        "  classes: " + (source == null ? "not known" : source.getLocation()));
  }

  /**
   * How many threads LibTorch computes with, here and in everything else of this process.
   *
   * @param numThreads at least 1
   */
  public static void setNumThreads(int numThreads) {
    AddendNative.addend_set_num_threads(numThreads);
  }

  /**
   * The operators that have a rule.
   *
   * @return them in the order of their names
   */
  public static List<OperatorInfo> operators() {
    final List<OperatorInfo> operators = new ArrayList<>();
    for (long index = 0; index < AddendNative.addend_op_count(); index++) {
      operators.add(new OperatorInfo(
          AddendNative.addend_op_name(index),
          AddendNative.addend_op_kind(index),
          AddendNative.addend_op_schema(index).lines().collect(Collectors.toUnmodifiableList())));
    }
    return Collections.unmodifiableList(operators);
  }

  /**
   * Calls an operator by its name under the default context: {@code Addend.call("aten::softmax", x, -1)}.
   *
   * @param op {@code aten::add.Tensor}, or {@code aten::add} where the arguments tell the overload
   * @param arguments as {@link Context#call} takes them
   * @return what it gives
   */
  public static Results call(String op, Object... arguments) {
    return Arguments.call(null, op, arguments);
  }

  /**
   * The exact Shapley values of the components for the first result of such a call.
   *
   * @param op the operator
   * @param arguments at most 16 components; the operator runs 2 to their power times
   * @return a composition
   */
  public static Composition callShapley(String op, Object... arguments) {
    return Arguments.callShapley(op, arguments);
  }
}
