package dev.addend;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
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
   * Says what the targets are elements of.
   *
   * @param selector {@code output.1}, or an inner tensor as for {@link #probe}; {@code null} for the first output
   * @return the changed copy
   */
  public Request at(String selector) {
    return option("at", selector == null ? "" : selector);
  }

  /**
   * Whether the first dimension of all split inputs and of the explained tensor counts examples, each of which has a target
   * of its own. Its index leaves out that dimension: there is one target for each example, or one for all.
   *
   * @param eachExample whether it does
   * @return the changed copy
   */
  public Request eachExample(boolean eachExample) {
    return option("each_example", String.valueOf(eachExample));
  }

  /**
   * Whether, beside {@link #eachExample}, each example has all of the targets, rather than one of them. Targets of the
   * attribution are then the first one for every example, then the second one, and attributions of an input are
   * [targets, *shape].
   *
   * @param everyTarget whether it has
   * @return the changed copy
   */
  public Request everyTarget(boolean everyTarget) {
    return option("every_target", String.valueOf(everyTarget));
  }

  /**
   * Whether {@link Model#attribute} also finds what passes through every operator.
   *
   * @param operators whether it does
   * @return the changed copy
   */
  public Request operators(boolean operators) {
    return option("operators", String.valueOf(operators));
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

  /**
   * Sets the time after which a run ends before its next operator, with
   * {@link AddendException.Code#CANCELLED}.
   *
   * @param timeout zero: never
   * @return the changed copy
   */
  public Request timeout(Duration timeout) {
    return option("timeout", String.valueOf(timeout.toNanos() / 1e9));
  }

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
   * Whether every operator is checked, not only those that results depend on.
   *
   * @param everything whether it is
   * @return the changed copy
   */
  public Request checkEverything(boolean everything) {
    return option("everything", String.valueOf(everything));
  }

  /**
   * A limit of memory, beside the model. In {@link Model#decompose(Request)}: for the parts of results and all rows on
   * their way there together, beside the recorded run. Components then move through the model in groups, which run it
   * once all the same. In {@link Model#attribute(Request)}: for the recorded run and its coefficients, about; what does
   * not fit is computed again, with the same bits.
   *
   * @param bytes at most; 0: any amount
   * @return the changed copy
   */
  public Request memory(long bytes) {
    if (bytes < 0) {
      throw new IllegalArgumentException("bytes is " + bytes + ", a negative number");
    }
    return option("memory", String.valueOf(bytes));
  }

  /**
   * Which way {@link Model#decompose(Request)} finds components; the same to rounding. At the beginning {@link
   * Direction#AUTO}.
   *
   * @param direction the way
   * @return the changed copy
   */
  public Request direction(Direction direction) {
    Objects.requireNonNull(direction, "direction");
    return option("direction", direction.text());
  }

  /**
   * Whether the model keeps what it gives on the baselines, and takes it from there in later runs of such requests where
   * the baselines and everything else that it depends on are the same; see {@link Model#forgetReferences()}.
   *
   * @param keep whether it does
   * @return the changed copy
   */
  public Request keepReferences(boolean keep) {
    return option("keep_references", String.valueOf(keep));
  }

  /**
   * Whether the plain model also runs on the baseline; {@link Report#referenceError()} then says how far the reference
   * is from that.
   *
   * @param verify whether it does; not unless given
   * @return the changed copy
   */
  public Request verifyReference(boolean verify) {
    return option("verify_reference", String.valueOf(verify));
  }

  /**
   * Whether {@link Model#record}, given one example, derives others of other sizes from it, parts and repetitions, and
   * learns from these. The program then holds between the sizes that were tried.
   *
   * @param learn whether it does; not unless given
   * @return the changed copy
   */
  public Request learnSizes(boolean learn) {
    return option("learn_sizes", String.valueOf(learn));
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
  long create(List<String> argumentNames, Borrow borrow) {
    final long request = Out.handle(AddendNative::addend_request_create);
    try {
      addExample(request, fields.example, argumentNames, borrow);
      for (Example other : fields.others) {
        AddendNative.addend_request_next_example(request);
        addExample(request, other, argumentNames, borrow);
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

  private static void addExample(long request, Example example, List<String> argumentNames, Borrow borrow) {
    final boolean structured = example.structure != null;
    for (NamedInput input : structured ? example.inputs : ordered(example.inputs, argumentNames)) {
      input.input.addTo(request, input.name, borrow);
    }
    if (structured) {
      AddendNative.addend_request_set_structure(request, example.structure);
    }
  }

  /** Named inputs in the order of the model's arguments, unknown names last; others as they are. */
  private static List<NamedInput> ordered(List<NamedInput> inputs, List<String> argumentNames) {
    final NamedInput[] ordered = inputs.toArray(new NamedInput[0]);
    Arrays.sort(ordered, Comparator.comparingInt(input -> {
      final int position = input.name == null ? 0 : argumentNames.indexOf(input.name);
      return position < 0 ? argumentNames.size() : position;
    }));
    return Arrays.asList(ordered);
  }
}
