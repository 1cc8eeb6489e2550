package dev.addend;

import java.util.List;
import java.util.Map;

/** What passed through an operator on the way from the inputs to some numbers; {@link Attribution#operators} has them. */
public final class AttributedOperator {
  private final long index;
  private final String op;
  private final int output;
  private final String call;
  private final String module;
  private final double[] passed;
  private final double[] leftover;

  AttributedOperator(Map<?, ?> record) {
    index = ((Double) record.get("index")).longValue();
    op = (String) record.get("op");
    output = ((Double) record.get("output")).intValue();
    call = (String) record.get("call");
    module = record.get("module") == null ? "" : (String) record.get("module");
    passed = numbers(record.get("passed"));
    leftover = numbers(record.get("leftover"));
  }

  private static double[] numbers(Object values) {
    return ((List<?>) values).stream().mapToDouble(JsonReader::number).toArray();
  }

  /**
   * Its number among the operators that ran.
   *
   * @return what a probe calls {@code #28}
   */
  public long index() {
    return index;
  }

  /**
   * Its name.
   *
   * @return for example {@code aten::linear}
   */
  public String op() {
    return op;
  }

  /**
   * Which of its outputs this is about.
   *
   * @return 0 for the first
   */
  public int output() {
    return output;
  }

  /**
   * How it was called, for people.
   *
   * @return one line
   */
  public String call() {
    return call;
  }

  /**
   * Where in the model it is.
   *
   * @return a path of modules; empty outside of all
   */
  public String module() {
    return module;
  }

  /**
   * What passed through it of value - reference.
   *
   * @return a new array, by target; one number for all examples together where each has a target
   */
  public double[] passed() {
    return passed.clone();
  }

  /**
   * What it left over itself.
   *
   * @return a new array, by target; one number for all examples together where each has a target
   */
  public double[] leftover() {
    return leftover.clone();
  }

  /**
   * Name and place.
   *
   * @return for example {@code aten::linear in encoder.fc1}
   */
  @Override
  public String toString() {
    return op + (module.isEmpty() ? "" : " in " + module);
  }
}
