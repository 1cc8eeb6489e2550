package dev.addend;

import java.util.ArrayList;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Objects;

/**
 * Some numbers, and what each element of the inputs gave to them; {@link Model#attribute} finds it.
 *
 * <pre>{@code
 * Request request = Request.of(Input.of(image).splitAlong(2, 3).baseline(0)).target(Target.element(8));
 * try (Attribution attribution = model.attribute(request); Tensor pixels = attribution.input(0)) {
 *   System.out.println(attribution.explain(0) + " " + Arrays.toString(pixels.toFloatArray()));
 * }
 * }</pre>
 */
public final class Attribution extends NativeObject {
  private static final int SHOWN = 10; // numbers in toString()

  private final List<String> inputNames;
  private final List<String> insideSelectors;

  Attribution(long address, List<String> inputNames, List<String> insideSelectors) {
    super("attribution", address, AddendNative::addend_attribution_release);
    this.inputNames = inputNames;
    this.insideSelectors = insideSelectors;
  }

  /**
   * How many numbers are explained.
   *
   * @return the targets of the request, or the examples
   */
  public int size() {
    return (int) handle().number(AddendNative::addend_attribution_num_targets);
  }

  /**
   * One of the numbers, by component.
   *
   * @param target its position
   * @return the explanation, as {@link Results#explain(Target)} would have it
   */
  public Explanation explain(int target) {
    return new Explanation(
        handle().made((attribution, out) -> AddendNative.addend_attribution_explain(attribution, target, out)));
  }

  /**
   * All of the numbers.
   *
   * @return an explanation for each
   */
  public List<Explanation> explanations() {
    final List<Explanation> all = new ArrayList<>();
    for (int target = 0; target < size(); target++) {
      all.add(explain(target));
    }
    return all;
  }

  /**
   * The notes of the run's report: what a reader has to know of it.
   *
   * @return one line each
   */
  public List<String> notes() {
    try (Results results = results()) {
      return results.notes();
    }
  }

  /**
   * The notes that say that numbers may not mean what a reader takes them for.
   *
   * @return one line each
   */
  public List<String> warnings() {
    try (Results results = results()) {
      return results.warnings();
    }
  }

  /**
   * The first explained numbers as sums, and the warnings.
   *
   * @return a line for each
   */
  @Override
  public String toString() {
    final List<String> lines = new ArrayList<>();
    for (int target = 0; target < Math.min(size(), SHOWN); target++) {
      lines.add(explain(target).toString());
    }
    if (size() > SHOWN) {
      lines.add("and " + (size() - SHOWN) + " more");
    }
    return Text.lines(lines, warnings());
  }

  /**
   * The explained tensor, then for each input what its elements give, nothing for plain ones, then the same for what is
   * split inside the model; and the report of the run.
   *
   * @return new results
   */
  public Results results() {
    return new Results(handle().made(AddendNative::addend_attribution_results));
  }

  /**
   * The explained tensor.
   *
   * @return what the model computed
   */
  public Tensor value() {
    try (Results results = results()) {
      return results.tensor(0);
    }
  }

  /**
   * The contributions of an input, element by element.
   *
   * @param index the input's position among the model's arguments
   * @return [targets, *shape], or [*shape] where each example has a target; for ids one number each
   * @throws IndexOutOfBoundsException if there is no such input
   */
  public Tensor input(int index) {
    try (Results results = results()) {
      final int inputs = results.size() - 1 - insideSelectors.size();
      if (index < 0 || index >= inputs) {
        throw new IndexOutOfBoundsException("there is no input " + index + " among " + inputs);
      }
      return results.tensor(index + 1);
    }
  }

  /**
   * The contributions of an input, element by element.
   *
   * @param name as in {@link Model#inputNames}; the path of a nested one, as {@code masks.keep}, or {@code 1.keep} where
   *     arguments have no name
   * @return [targets, *shape], or [*shape] where each example has a target; for ids one number each
   */
  public Tensor input(String name) {
    final int index = inputNames.indexOf(name);
    if (index < 0) {
      throw new NoSuchElementException("no input is called " + name + ", there are " + inputNames);
    }
    return input(index);
  }

  /**
   * The contributions of a tensor inside the model, element by element.
   *
   * @param index its position among those of {@link Request#inside}
   * @return [targets, *shape], or [*shape] where each example has a target
   */
  public Tensor inside(int index) {
    Objects.checkIndex(index, insideSelectors.size());
    try (Results results = results()) {
      return results.tensor(results.size() - insideSelectors.size() + index);
    }
  }

  /**
   * The contributions of a tensor inside the model, element by element.
   *
   * @param selector as it was given to {@link Inside#of}
   * @return [targets, *shape], or [*shape] where each example has a target
   */
  public Tensor inside(String selector) {
    final int index = insideSelectors.indexOf(selector);
    if (index < 0) {
      throw new NoSuchElementException("nothing was split at " + selector + ", but at " + insideSelectors);
    }
    return inside(index);
  }

  /**
   * The relevance that passed through each operator.
   *
   * @return one entry for each; none unless the request asked for operators
   */
  public List<AttributedOperator> operators() {
    return JsonReader.list(JsonReader.object(toJson()).get("operators"), AttributedOperator::new);
  }

  /**
   * For each target, or for each example, the concepts that moved it the way that they describe, the largest first.
   *
   * @param concepts what people are told of
   * @return the reasons of all
   * @throws AddendException if a concept names no component, two claim one, or a text asks for a value that is no number
   *     of an input
   */
  public Reasons reasons(Concepts concepts) {
    try (Borrow borrow = new Borrow()) {
      final long own = borrow.of(concepts);
      return new Reasons(handle().text((of, out) -> AddendNative.addend_attribution_reasons(of, own, out)));
    }
  }

  /**
   * All of it as data.
   *
   * @return a JSON object
   */
  public String toJson() {
    return handle().text(AddendNative::addend_attribution_json);
  }

  /**
   * All of it for a browser.
   *
   * @return a page that needs nothing else
   */
  public String toHtml() {
    return handle().text(AddendNative::addend_attribution_html);
  }

}
