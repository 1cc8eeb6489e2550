package dev.addend;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * What a model is asked: its inputs, probes, and who may cancel. Immutable: each method gives a changed copy.
 *
 * <pre>{@code
 * Request request = Request.of(Map.of("ids", words, "mask", Input.of(mask))).probe("logits");
 * }</pre>
 */
public final class Request {
  private final List<NamedInput> inputs;
  private final List<String> probes;
  private final Map<String, Tensor> parameters;
  private final boolean everything;
  private final Cancellation cancellation;

  private Request(
      List<NamedInput> inputs,
      List<String> probes,
      Map<String, Tensor> parameters,
      boolean everything,
      Cancellation cancellation) {
    this.inputs = inputs;
    this.probes = probes;
    this.parameters = parameters;
    this.everything = everything;
    this.cancellation = cancellation;
  }

  private static final class NamedInput {
    final String name;
    final Input input;

    NamedInput(String name, Input input) {
      this.name = name;
      this.input = Objects.requireNonNull(input, "input");
    }
  }

  /**
   * Inputs in the order of the model's arguments.
   *
   * @param inputs the inputs
   * @return the request
   */
  public static Request of(Input... inputs) {
    final List<NamedInput> list = new ArrayList<>();
    for (Input input : inputs) {
      list.add(new NamedInput(null, input));
    }
    return new Request(list, Collections.emptyList(), Collections.emptyMap(), false, null);
  }

  /**
   * Inputs by the names of the model's arguments. Their components follow each other in the order of those arguments,
   * whatever the order of the map.
   *
   * @param inputs the inputs
   * @return the request
   */
  public static Request of(Map<String, Input> inputs) {
    final List<NamedInput> list = new ArrayList<>();
    inputs.forEach((name, input) -> list.add(new NamedInput(Objects.requireNonNull(name, "name"), input)));
    return new Request(list, Collections.emptyList(), Collections.emptyMap(), false, null);
  }

  /**
   * Asks for the composition of an inner tensor too.
   *
   * @param selector {@code layers.0.attention} (a module), {@code #28} (an operator by its number), {@code aten::gelu} or
   *     {@code aten::gelu:2} (an operator by its name), {@code logits} (what a final softmax reads)
   * @return the changed copy
   */
  public Request probe(String selector) {
    final List<String> more = new ArrayList<>(probes);
    more.add(Objects.requireNonNull(selector, "selector"));
    return new Request(inputs, more, parameters, everything, cancellation);
  }

  /**
   * Names a parameter of what runs in a {@link TracingScope}, so that reports name operators by what they read.
   *
   * @param name the parameter's name, as {@code encoder.weight}
   * @param tensor the tensor that operators are called with, open as long as the request is used
   * @return the changed copy
   */
  public Request parameter(String name, Tensor tensor) {
    final Map<String, Tensor> more = new LinkedHashMap<>(parameters);
    more.put(Objects.requireNonNull(name, "name"), Objects.requireNonNull(tensor, "tensor"));
    return new Request(inputs, probes, more, everything, cancellation);
  }

  /**
   * Whether every operator is checked, not only those that results depend on.
   *
   * @param everything whether it is
   * @return the changed copy
   */
  public Request checkEverything(boolean everything) {
    return new Request(inputs, probes, parameters, everything, cancellation);
  }

  /**
   * Who may end runs of this request.
   *
   * @param cancellation a switch, open as long as the request is used; {@code null} for nobody
   * @return the changed copy
   */
  public Request cancellation(Cancellation cancellation) {
    return new Request(inputs, probes, parameters, everything, cancellation);
  }

  /** The native request, which the caller releases. */
  long create(List<String> argumentNames, Borrow borrow) {
    final long request = Out.handle(AddendNative::addend_request_create);
    try {
      for (NamedInput input : ordered(argumentNames)) {
        input.input.addTo(request, input.name, borrow);
      }
      for (String probe : probes) {
        AddendNative.addend_request_add_probe(request, probe);
      }
      parameters.forEach(
          (name, tensor) -> AddendNative.addend_request_add_parameter(request, name, borrow.of(tensor)));
      AddendNative.addend_request_set_everything(request, everything ? 1 : 0);
      AddendNative.addend_request_set_cancellation(request, borrow.of(cancellation));
      return request;
    } catch (RuntimeException | Error e) {
      AddendNative.addend_request_release(request);
      throw e;
    }
  }

  /** Named inputs in the order of the model's arguments, unknown names last; others as they are. */
  private List<NamedInput> ordered(List<String> argumentNames) {
    final NamedInput[] ordered = inputs.toArray(new NamedInput[0]);
    Arrays.sort(ordered, Comparator.comparingInt(input -> {
      final int position = input.name == null ? 0 : argumentNames.indexOf(input.name);
      return position < 0 ? argumentNames.size() : position;
    }));
    return Arrays.asList(ordered);
  }
}
