package dev.addend;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.NoSuchElementException;

/** The results of a run or a call, in order, with its report; those of a model are its outputs, then its probes. */
public final class Results extends NativeObject {
  Results(long address) {
    super("results", address, AddendNative::addend_results_release);
  }

  /** The kind of a result. */
  public enum Kind {
    /** None. */
    NONE(AddendResultKind.ADDEND_RESULT_NONE),
    /** A decomposed tensor. */
    COMPOSITION(AddendResultKind.ADDEND_RESULT_COMPOSITION),
    /** Integers, booleans, and everything where no composition was given. */
    TENSOR(AddendResultKind.ADDEND_RESULT_TENSOR),
    /** One number. */
    NUMBER(AddendResultKind.ADDEND_RESULT_NUMBER);

    private final int number;

    Kind(int number) {
      this.number = number;
    }
  }

  /**
   * How many there are.
   *
   * @return the number of results
   */
  public int size() {
    return (int) handle().number(AddendNative::addend_results_size);
  }

  /**
   * The kind of a result.
   *
   * @param index its position
   * @return its kind
   */
  public Kind kind(int index) {
    final int number = handle().tell(results -> AddendNative.addend_results_kind(results, index));
    for (Kind kind : Kind.values()) {
      if (kind.number == number) {
        return kind;
      }
    }
    throw new UnsupportedOperationException("no Kind for results of the number " + number);
  }

  /**
   * The names of the results: {@code output}, {@code output.1}, or {@code output.logits} of a dictionary, and the
   * probes' selectors.
   *
   * @return one name for each result, empty where there is none
   */
  public List<String> names() {
    return handle().texts(AddendNative::addend_results_size, AddendNative::addend_results_name);
  }

  /**
   * A result that is a composition.
   *
   * @param index its position
   * @return the composition
   */
  public Composition composition(int index) {
    return new Composition(
        handle().made((results, out) -> AddendNative.addend_results_composition(results, index, out)));
  }

  /**
   * A result that is a composition.
   *
   * @param name as in {@link #names}
   * @return the composition
   */
  public Composition composition(String name) {
    return composition(indexOf(name));
  }

  /**
   * A tensor, or the value of a composition.
   *
   * @param index its position
   * @return the tensor
   */
  public Tensor tensor(int index) {
    return new Tensor(handle().made((results, out) -> AddendNative.addend_results_tensor(results, index, out)));
  }

  /**
   * A tensor, or the value of a composition.
   *
   * @param name as in {@link #names}
   * @return the tensor
   */
  public Tensor tensor(String name) {
    return tensor(indexOf(name));
  }

  /**
   * A result that is a number.
   *
   * @param index its position
   * @return the number
   */
  public double number(int index) {
    final double[] out = new double[1];
    handle().run(results -> AddendNative.addend_results_number(results, index, out));
    return out[0];
  }

  /**
   * Explains one number of the first composition.
   *
   * @param target which
   * @return the explanation, whose components have the names of the request
   */
  public Explanation explain(Target target) {
    return explain(null, target);
  }

  /**
   * Explains one number of a composition.
   *
   * @param name of the result; {@code null} for the first one
   * @param target which number
   * @return the explanation, whose components have the names of the request
   */
  public Explanation explain(String name, Target target) {
    return new Explanation(
        handle().made((results, out) -> AddendNative.addend_results_explain(results, name, target.toString(), out)));
  }

  /**
   * The report of the run: counts, errors, notes.
   *
   * @return the report
   * @throws AddendException if nothing was decomposed, as by {@link Model#run(Request)}
   */
  public Report report() {
    if (Double.isNaN(handle().tell(results -> AddendNative.addend_results_report_number(results, "operators")))) {
      reportJson(); // throws what is wrong
    }
    return new Report(handle());
  }

  /**
   * The whole report: policy, counts, errors, notes, tracing failures, and every check, worst first.
   *
   * @return a JSON object
   * @throws AddendException if nothing was decomposed, as by {@link Model#run(Request)}
   */
  public String reportJson() {
    return handle().text(AddendNative::addend_results_report);
  }

  /**
   * Everything that a reader has to know: the notes of the report; for a replay, which has no report, a note that
   * random numbers were drawn anew.
   *
   * @return one line each
   */
  public List<String> notes() {
    return handle().lines(AddendNative::addend_results_note);
  }

  /**
   * The notes that say that numbers may not mean what a reader takes them for.
   *
   * @return one line each
   */
  public List<String> warnings() {
    return handle().lines(AddendNative::addend_results_warning);
  }

  /**
   * The results, each with its name, its shape and, of a composition, the number of its components; then the warnings.
   *
   * @return a line for each
   */
  @Override
  public String toString() {
    if (isClosed()) {
      return "closed results";
    }
    final List<String> lines = new ArrayList<>();
    final List<String> names = names();
    for (int index = 0; index < names.size(); index++) {
      lines.add((names.get(index).isEmpty() ? Integer.toString(index) : names.get(index)) + ": " + described(index));
    }
    return Text.lines(lines, warnings());
  }

  private String described(int index) {
    switch (kind(index)) {
      case COMPOSITION:
        try (Composition composition = composition(index)) {
          return composition.numc() + " components of " + Arrays.toString(composition.shape());
        }
      case TENSOR:
        try (Tensor tensor = tensor(index)) {
          return Arrays.toString(tensor.shape());
        }
      case NUMBER:
        return String.format(Locale.ROOT, "%.6g", number(index));
      default:
        return "none";
    }
  }

  private int indexOf(String name) {
    final int index = names().indexOf(name);
    if (index < 0) {
      throw new NoSuchElementException("no result is called " + name + ", there are " + names());
    }
    return index;
  }
}
