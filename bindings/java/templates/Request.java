// Generated from bindings/java/templates/Request.java and core/explain/request_options.txt; do not edit.
package dev.addend;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.stream.Collectors;

/**
 * A question to a model: its inputs, probes or targets, and who may cancel. Immutable: each method gives a changed
 * copy.
 *
 * <pre>{@code
 * Request request = Request.of(Map.of("ids", words, "mask", Input.of(mask))).probe("logits");
 * }</pre>
 */
public final class Request {
  private final Fields fields;

  private Request(Fields fields) {
    this.fields = fields;
  }

  /** The members of a request. They change only as long as no request has them. */
  private static final class Fields implements Cloneable {
    Example example = new Example(Collections.emptyList(), null);
    List<Example> others = Collections.emptyList();
    List<Inside> inside = Collections.emptyList();
    List<String> probes = Collections.emptyList();
    List<Target> targets = Collections.emptyList();
    List<String> outputs = Collections.emptyList();
    Map<String, Tensor> parameters = Collections.emptyMap();
    Map<String, Tensor> buffers = Collections.emptyMap();
    Map<String, String> options = Collections.emptyMap();
    Cancellation cancellation;

    @Override
    public Fields clone() {
      try {
        return (Fields) super.clone();
      } catch (CloneNotSupportedException e) {
        throw new AssertionError(e);
      }
    }
  }

  /** The arguments of one run of the model. */
  private static final class Example {
    final List<NamedInput> inputs;
    final String structure; // null: the inputs are the arguments

    Example(List<NamedInput> inputs, String structure) {
      this.inputs = inputs;
      this.structure = structure;
    }

    static Example of(Structure structure) {
      return new Example(listed(structure.inputs), structure.json);
    }
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
    return new Request(new Fields()).with(fields -> fields.example = new Example(listed(inputs), null));
  }

  /**
   * Inputs by the names of the model's arguments. Their components follow each other in the order of those arguments,
   * whatever the order of the map.
   *
   * @param inputs the inputs
   * @return the request
   */
  public static Request of(Map<String, Input> inputs) {
    return new Request(new Fields()).with(fields -> fields.example = new Example(listed(inputs), null));
  }

  /**
   * Arguments of any kind, in the order of the model's: an {@link Input} or a {@link Tensor}, a number, boolean, String or
   * {@code null}, and a {@link Tuple}, List or Map by Strings of any of these. An Integer is an integer, a Double is not;
   * empty lists and maps are taken for such of tensors.
   *
   * @param arguments the arguments
   * @return the request
   */
  public static Request ofArguments(Object... arguments) {
    final Structure structure = new Structure(arguments);
    return new Request(new Fields()).with(fields -> fields.example = Example.of(structure));
  }

  /**
   * Arguments of any kind, by the names of the model's; see {@link #ofArguments(Object...)}.
   *
   * @param arguments the arguments
   * @return the request
   */
  public static Request ofArguments(Map<String, ?> arguments) {
    final Structure structure = new Structure(arguments);
    return new Request(new Fields()).with(fields -> fields.example = Example.of(structure));
  }

  /**
   * Adds a further example of what the model takes, its arguments as for {@link #ofArguments(Object...)}.
   *
   * @param arguments the arguments
   * @return the changed copy
   */
  public Request otherArguments(Object... arguments) {
    final Structure structure = new Structure(arguments);
    return with(fields -> fields.others = more(fields.others, Example.of(structure)));
  }

  /**
   * Adds a further example of what the model takes, its inputs in the order of the model's arguments: of other sizes to
   * learn from, for {@link Model#record}, or of other values to try, for {@link Model#checkTrace}. Nothing else takes
   * several.
   *
   * @param inputs the inputs
   * @return the changed copy
   */
  public Request other(Input... inputs) {
    return with(fields -> fields.others = more(fields.others, new Example(listed(inputs), null)));
  }

  /**
   * Adds a further example of what the model takes, its inputs by the names of the model's arguments.
   *
   * @param inputs the inputs
   * @return the changed copy
   */
  public Request other(Map<String, Input> inputs) {
    return with(fields -> fields.others = more(fields.others, new Example(listed(inputs), null)));
  }

  /**
   * Adds a tensor inside the model at which components begin, in place of the inputs, which are plain then. It takes one
   * more run of the model: {@link LiveScope#runAgain} in scopes. Looked at by {@link Model#decompose(Request)}, {@link
   * Model#attribute(Request)}, {@link TracingScope} and {@link AttributionScope}.
   *
   * @param inside the tensor, how it is split, and its baseline
   * @return the changed copy
   */
  public Request inside(Inside inside) {
    Objects.requireNonNull(inside, "inside");
    return with(fields -> fields.inside = more(fields.inside, inside));
  }

  /**
   * Asks for the composition of an inner tensor too.
   *
   * @param selector {@code layers.0.attention} (what left a module), {@code encoder@1} (the same of one of several calls),
   *     {@code attention:1} (one of several tensors that left it), {@code encoder@*} and {@code attention:*} (all of them,
   *     each a result of its own), {@code #28} (an operator by its number), {@code #28:1} (one of its tensors), {@code
   *     aten::gelu} or {@code aten::gelu:2} (an operator by its name), {@code logits} (what the last softmax or sigmoid
   *     reads)
   * @return the changed copy
   */
  public Request probe(String selector) {
    Objects.requireNonNull(selector, "selector");
    return with(fields -> fields.probes = more(fields.probes, selector));
  }

  /**
   * Chooses one of the model's results; those that no call chooses are left out. Without any, all count. They are
   * decomposed; attributions and plans explain the first of them, unless another tensor is named.
   *
   * @param name {@code output} or {@code output.1}; {@code output.logits} of a dictionary
   * @return the changed copy
   */
  public Request output(String name) {
    Objects.requireNonNull(name, "name");
    return with(fields -> fields.outputs = more(fields.outputs, name));
  }

  /**
   * Adds a number for {@link Model#attribute} to explain. Without any it is the largest element.
   *
   * @param target an element of the first output, or of what {@link #at} says
   * @return the changed copy
   */
  public Request target(Target target) {
    Objects.requireNonNull(target, "target");
    return with(fields -> fields.targets = more(fields.targets, target));
  }

  /**
   * Sets an option of {@code addend_request_set_option} by its key: {@code option("everything", "true")}.
   *
   * @param key of the option
   * @param value flags are {@code true} or {@code false}
   * @return the changed copy
   */
  public Request option(String key, String value) {
    return with(fields -> fields.options = more(fields.options, key, value));
  }

  // request: methods

  /**
   * Names a parameter of what runs in a {@link TracingScope}, an {@link AttributionScope} or a {@link RecordingScope}, so
   * that reports name operators by what they read.
   *
   * @param name the parameter's name, as {@code encoder.weight}
   * @param tensor the tensor that operators are called with, open as long as the request is used
   * @return the changed copy
   */
  public Request parameter(String name, Tensor tensor) {
    return with(fields -> fields.parameters = more(fields.parameters, name, tensor));
  }

  /**
   * Names a buffer, a tensor that is not learned, as {@link #parameter} names a parameter.
   *
   * @param name the buffer's name, as {@code encoder.running_mean}
   * @param tensor the tensor that operators are called with, open as long as the request is used
   * @return the changed copy
   */
  public Request buffer(String name, Tensor tensor) {
    return with(fields -> fields.buffers = more(fields.buffers, name, tensor));
  }

  /**
   * Who may end runs of this request.
   *
   * @param cancellation a switch, open as long as the request is used; {@code null} for nobody
   * @return the changed copy
   */
  public Request cancellation(Cancellation cancellation) {
    return with(fields -> fields.cancellation = cancellation);
  }

  /**
   * The names of the inputs: their paths in the arguments, or {@code argumentNames} if the inputs are the arguments.
   */
  List<String> namesOr(List<String> argumentNames) {
    return fields.example.structure == null
        ? argumentNames
        : fields.example.inputs.stream().map(input -> input.name).collect(Collectors.toList());
  }

  /** The names that the request itself gives its inputs; empty for those without a name. */
  List<String> ownNames() {
    return fields.example.inputs.stream().map(input -> input.name == null ? "" : input.name)
        .collect(Collectors.toList());
  }

  /** The selectors of what is split inside the model. */
  List<String> insideSelectors() {
    return fields.inside.stream().map(Inside::selector).collect(Collectors.toList());
  }

  /** The native request, which the caller releases. */
  long create(Borrow borrow) {
    final long request = Out.handle(AddendNative::addend_request_create);
    try {
      addExample(request, fields.example, borrow);
      for (Example other : fields.others) {
        AddendNative.addend_request_next_example(request);
        addExample(request, other, borrow);
      }
      for (Inside inside : fields.inside) {
        inside.addTo(request, borrow);
      }
      for (String probe : fields.probes) {
        AddendNative.addend_request_add_probe(request, probe);
      }
      for (String output : fields.outputs) {
        AddendNative.addend_request_add_output(request, output);
      }
      for (Target target : fields.targets) {
        AddendNative.addend_request_add_target(request, target.toString());
      }
      fields.options.forEach((key, value) -> AddendNative.addend_request_set_option(request, key, value));
      fields.parameters.forEach(
          (name, tensor) -> AddendNative.addend_request_add_parameter(request, name, borrow.of(tensor)));
      fields.buffers.forEach(
          (name, tensor) -> AddendNative.addend_request_add_buffer(request, name, borrow.of(tensor)));
      AddendNative.addend_request_set_cancellation(request, borrow.of(fields.cancellation));
      return request;
    } catch (RuntimeException | Error e) {
      AddendNative.addend_request_release(request);
      throw e;
    }
  }

  private Request with(Consumer<Fields> change) {
    final Fields changed = fields.clone();
    change.accept(changed);
    return new Request(changed);
  }

  private static <T> List<T> more(List<T> list, T element) {
    final List<T> more = new ArrayList<>(list);
    more.add(element);
    return more;
  }

  private static <T> Map<String, T> more(Map<String, T> map, String name, T value) {
    final Map<String, T> more = new LinkedHashMap<>(map);
    more.put(Objects.requireNonNull(name, "name"), Objects.requireNonNull(value, "value"));
    return more;
  }

  private static List<NamedInput> listed(Input... inputs) {
    final List<NamedInput> list = new ArrayList<>();
    for (Input input : inputs) {
      list.add(new NamedInput(null, input));
    }
    return list;
  }

  private static List<NamedInput> listed(Map<String, Input> inputs) {
    final List<NamedInput> list = new ArrayList<>();
    inputs.forEach((name, input) -> list.add(new NamedInput(Objects.requireNonNull(name, "name"), input)));
    return list;
  }

  private static void addExample(long request, Example example, Borrow borrow) {
    for (NamedInput input : example.inputs) {
      input.input.addTo(request, input.name, borrow);
    }
    if (example.structure != null) {
      AddendNative.addend_request_set_structure(request, example.structure);
    }
  }
}
