package dev.addend;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.stream.Stream;

/**
 * The recorded run of a model for one input, from {@link Model#record(Tensor...)} or {@link #load}: to be read, kept,
 * and run again without the model. A run stops if a number that left the tensors ({@code item()}, a condition, the size
 * of {@code nonzero()}) differs from the recording. Immutable; threads may share one.
 *
 * <pre>{@code
 * Program program = model.record(image);
 * System.out.println(program.code());
 * Tensor inner = program.replay(Request.of(Input.of(other)), ReplayOptions.defaults().values("relu")).tensor("relu");
 * }</pre>
 */
public final class Program extends NativeObject {
  Program(long address) {
    super("program", address, AddendNative::addend_program_release);
  }

  /** The kind of a tensor of a program. */
  public enum ValueKind {
    /** An input of the model. */
    INPUT,
    /** A parameter of the model. */
    PARAMETER,
    /** A buffer of the model. */
    BUFFER,
    /** A tensor that was there before the run and is none of these. */
    CONSTANT,
    /** The result of an operator. */
    RESULT,
    /** An element of a list that an operator gave or took. */
    PART
  }

  /**
   * Reads what {@link #save} has written. That runs nothing, and refuses what is cut off, edited or of another version;
   * running a program runs the operators that the files name, so run only what you trust.
   *
   * @param folder the folder
   * @return the program
   */
  public static Program load(Path folder) {
    return new Program(Out.handle(out -> AddendNative.addend_program_load(Text.of(folder), out)));
  }

  /**
   * Writes {@code program.json} and {@code weights.safetensors}.
   *
   * @param folder made if there is none
   */
  public void save(Path folder) {
    handle().run(object -> AddendNative.addend_program_save(object, Text.of(folder)));
  }

  /**
   * Writes a TorchScript file, which LibTorch runs without this library, with the parameters and buffers by their names.
   * Refused are programs with a number that depends on elements and has left the tensors, with its position: such a file
   * would go the recorded way without a word.
   *
   * @param path the file
   */
  public void exportTorchScript(Path path) {
    handle().run(object -> AddendNative.addend_program_export_torchscript(object, Text.of(path)));
  }

  /**
   * The program with every floating-point tensor of another floating-point type, parameters included. It is replayed on
   * inputs of that type, and stops at an operator that gives another one.
   *
   * @param dtype the type
   * @return a new program
   */
  public Program to(DType dtype) {
    final int number = Objects.requireNonNull(dtype, "dtype").number();
    return new Program(handle().made((program, out) -> AddendNative.addend_program_to(program, number, out)));
  }

  /**
   * Lists everything that a replay lacks, before anything runs.
   *
   * @param request the inputs
   * @return nothing where nothing is missing
   */
  public List<Requirement> requirements(Request request) {
    return requirements(request, null);
  }

  /**
   * Lists everything that a replay lacks, before anything runs.
   *
   * @param request the inputs
   * @param context whose rules count; {@code null} for the defaults
   * @return nothing where nothing is missing
   */
  public List<Requirement> requirements(Request request, Context context) {
    try (Borrow borrow = new Borrow()) {
      final long c = borrow.of(context);
      final long program = borrow.of(this);
      final long r = borrow.of(request);
      return Requirement.read(Out.text(out -> AddendNative.addend_program_requirements(c, program, r, out)));
    }
  }

  /**
   * The program as a model, to be run, decomposed and attributed without the one that was recorded.
   *
   * @return a new model
   */
  public Model model() {
    return new Model(handle().made(AddendNative::addend_program_model));
  }

  /**
   * Runs the program.
   *
   * @param inputs in the order of the model's arguments
   * @return what the model would give
   */
  public Results replay(Tensor... inputs) {
    return replay(Request.of(Stream.of(inputs).map(Input::of).toArray(Input[]::new)), ReplayOptions.defaults());
  }

  /**
   * Runs the program.
   *
   * @param request whose inputs are taken
   * @param options which inner tensors are wanted, and what guards do
   * @return what the model would give, then the inner tensors by their names
   */
  public Results replay(Request request, ReplayOptions options) {
    final String text = options.toJson();
    try (Borrow borrow = new Borrow()) {
      final long program = borrow.of(this);
      final long r = borrow.of(request);
      return new Results(Out.handle(out -> AddendNative.addend_program_replay(program, r, text, out)));
    }
  }

  /**
   * How many operators were called.
   *
   * @return the count
   */
  public int numOperators() {
    return (int) handle().number(AddendNative::addend_program_num_operators);
  }

  /**
   * The names of all tensors of the program, which are unique.
   *
   * @return them in order
   */
  public List<String> names() {
    return names(List.of(ValueKind.values()));
  }

  /**
   * The names of the tensors of one kind.
   *
   * @param kind the kind
   * @return them in order
   */
  public List<String> names(ValueKind kind) {
    return names(List.of(kind));
  }

  /** A tensor that a program gives. */
  public static final class Output {
    private final String name;
    private final DType dtype;
    private final long[] shape;

    Output(String name, DType dtype, long[] shape) {
      this.name = name;
      this.dtype = dtype;
      this.shape = shape;
    }

    /**
     * The name that its result has.
     *
     * @return for example {@code output}
     */
    public String name() {
      return name;
    }

    /**
     * The dtype of its elements.
     *
     * @return the dtype
     */
    public DType dtype() {
      return dtype;
    }

    /**
     * The sizes of its dimensions in the recording; other inputs may give others.
     *
     * @return a new array
     */
    public long[] shape() {
      return shape.clone();
    }
  }

  /**
   * The outputs of the program, in order; known before it runs.
   *
   * @return the outputs
   */
  public List<Output> outputs() {
    final List<Output> outputs = new ArrayList<>();
    for (String name : handle().texts(
        AddendNative::addend_program_num_outputs, AddendNative::addend_program_output_name)) {
      final long k = outputs.size();
      final int dtype = handle().tell(program -> AddendNative.addend_program_output_dtype(program, k));
      final long[] shape = handle().numbers(
          program -> AddendNative.addend_program_output_num_dims(program, k),
          (program, dim) -> AddendNative.addend_program_output_size(program, k, dim));
      outputs.add(new Output(name, DType.of(dtype), shape));
    }
    return outputs;
  }

  /**
   * A summary that is known before it runs: {@code operators}, {@code inputs}, {@code output}, {@code values},
   * {@code guards}, and {@code free}, the dimensions of inputs that may have another size.
   *
   * @return a JSON object
   */
  public String summaryJson() {
    return handle().text(AddendNative::addend_program_summary);
  }

  /**
   * Its operators as text, each under the source lines that called it.
   *
   * @return many lines
   */
  public String code() {
    return code(CodeOptions.defaults());
  }

  /**
   * Its operators as text, each under the source lines that called it.
   *
   * @param options how it is written
   * @return many lines
   */
  public String code(CodeOptions options) {
    final String json = options.toJson();
    return handle().text((program, out) -> AddendNative.addend_program_code_text(program, json, out));
  }

  /**
   * Its code as data: {@code calls}, each with its {@code line}, and the {@code places} where they stand.
   *
   * @param options how it is written
   * @return a JSON object
   */
  public String codeJson(CodeOptions options) {
    final String json = options.toJson();
    return handle().text((program, out) -> AddendNative.addend_program_code_json(program, json, out));
  }

  /**
   * Its graph: {@code nodes} in topological order and {@code edges}.
   *
   * @param numbers what is known of each operator
   * @return a JSON object
   */
  public String graphJson(CallNumbers... numbers) {
    final JsonObject options = new JsonObject().putJson("numbers", CallNumbers.toJson(numbers));
    return handle().text((program, out) -> AddendNative.addend_program_graph_json(program, options.toString(), out));
  }

  /**
   * Its graph for Graphviz, with modules as boxes.
   *
   * @return a graph in the language DOT
   */
  public String graphDot() {
    return graphDot(false, true);
  }

  /**
   * Its graph for Graphviz.
   *
   * @param sources whether parameters, buffers and constants are nodes
   * @param modules whether modules are boxes
   * @return a graph in the language DOT
   */
  public String graphDot(boolean sources, boolean modules) {
    final String options = new JsonObject().put("sources", sources).put("modules", modules).toString();
    return handle().text((program, out) -> AddendNative.addend_program_graph_dot(program, options, out));
  }

  /**
   * Its graph for a browser.
   *
   * @param title what the page is called
   * @param numbers what is known of each operator
   * @return a page that needs nothing else
   */
  public String graphHtml(String title, CallNumbers... numbers) {
    final JsonObject options = new JsonObject().put("title", title).putJson("numbers", CallNumbers.toJson(numbers));
    return handle().text((program, out) -> AddendNative.addend_program_graph_html(program, options.toString(), out));
  }

  private List<String> names(List<ValueKind> kinds) {
    final List<String> names = new ArrayList<>();
    handle().run(program -> {
      for (long index = 0; index < AddendNative.addend_program_num_values(program); index++) {
        final String kind = AddendNative.addend_program_value_kind(program, index);
        if (kinds.contains(ValueKind.valueOf(kind.toUpperCase(Locale.ROOT)))) {
          names.add(AddendNative.addend_program_value_name(program, index));
        }
      }
    });
    return names;
  }
}
