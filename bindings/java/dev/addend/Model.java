package dev.addend;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/** A model on the CPU, in evaluation mode. A model is a program: run only what you trust. */
public final class Model extends NativeObject {
  private final List<String> inputNames;

  Model(long address) {
    super("model", address, AddendNative::addend_model_release);
    inputNames = handle().texts(AddendNative::addend_model_num_inputs, AddendNative::addend_model_input_name);
  }

  /**
   * Loads a TorchScript file, a program that {@code torch.export} saved ({@code .pt2}), or an ONNX model.
   *
   * @param path the file
   * @return the model
   */
  public static Model load(Path path) {
    return load(path, null);
  }

  /**
   * Loads a TorchScript file, a program that {@code torch.export} saved ({@code .pt2}), or an ONNX model.
   *
   * @param path the file
   * @param dtype what parameters and floating-point buffers are converted to; {@code null}: as they are
   * @return the model
   */
  public static Model load(Path path, DType dtype) {
    return new Model(
        Out.handle(out -> AddendNative.addend_model_load(Text.of(path), DType.numberOf(dtype), out)));
  }

  /**
   * Loads the bytes of such a file.
   *
   * @param bytes what is between position and limit, neither of which changes; read before this returns
   * @return the model
   */
  public static Model load(ByteBuffer bytes) {
    return load(bytes, null);
  }

  /**
   * Loads the bytes of such a file.
   *
   * @param bytes what is between position and limit, neither of which changes; read before this returns
   * @param dtype what parameters and floating-point buffers are converted to; {@code null}: as they are
   * @return the model
   */
  public static Model load(ByteBuffer bytes, DType dtype) {
    final ByteBuffer direct = Memory.direct(bytes);
    return new Model(Out.handle(
        out -> AddendNative.addend_model_load_bytes(direct, direct.remaining(), DType.numberOf(dtype), out)));
  }

  /**
   * The SHA-256 of a model, as {@link AuditLog} and {@link Job} have it. That of a file is the one of its bytes. An ONNX model
   * with weights in files beside it has one that stands for all of these files, and so has the folder of a program.
   *
   * @param path a file that {@link #load(Path)} takes, or a folder that {@link Program#save} wrote
   * @return 64 hexadecimal digits
   */
  public static String sha256(Path path) {
    return Out.text(out -> AddendNative.addend_model_sha256(Text.of(path), out));
  }

  /**
   * A model of the same parameters that runs other methods than {@code forward}. They run one after the other, each on
   * as many of the inputs as it has arguments. Several methods give the outputs of each, in order, and their inputs are
   * called {@code encode.x}.
   *
   * @param names the names of the methods
   * @return a new model
   */
  public Model methods(String... names) {
    for (String name : names) {
      if (name.indexOf(',') >= 0) {
        throw new IllegalArgumentException("a method is not called " + name);
      }
    }
    final String joined = String.join(",", names);
    return new Model(handle().made((model, out) -> AddendNative.addend_model_methods(model, joined, out)));
  }

  /**
   * A copy of a model from a file, of another dtype.
   *
   * @param dtype what parameters and floating-point buffers are converted to
   * @return a new model
   */
  public Model to(DType dtype) {
    return converted(DType.numberOf(dtype), null);
  }

  /**
   * A copy of a model from a file, on another device. Its inputs have to be there too.
   *
   * @param device for example {@code cpu} or {@code cuda:0}
   * @return a new model
   */
  public Model to(String device) {
    return converted(0, device);
  }

  private Model converted(int dtype, String device) {
    return new Model(handle().made((model, out) -> AddendNative.addend_model_to(model, dtype, device, out)));
  }

  /**
   * Forgets what requests with {@link Request#keepReferences(boolean)} made it keep: to free the memory, or after writes
   * to parameters that no operator made.
   */
  public void forgetReferences() {
    handle().run(AddendNative::addend_model_forget_references);
  }

  /**
   * Lists everything that a run lacks, before anything runs. It is found by reading the source of the model, including
   * branches that are not taken.
   *
   * @param request the inputs
   * @return nothing where nothing is missing
   */
  public List<Requirement> requirements(Request request) {
    return requirements(request, null);
  }

  /**
   * Lists everything that a run lacks, before anything runs.
   *
   * @param request the inputs
   * @param context whose rules count; {@code null} for the defaults
   * @return nothing where nothing is missing
   */
  public List<Requirement> requirements(Request request, Context context) {
    final long text = ask(request, context, AddendNative::addend_model_requirements);
    return Requirement.read(Out.text(out -> out[0] = text));
  }

  /**
   * The arguments that the model takes.
   *
   * @return their names in order
   */
  public List<String> inputNames() {
    return inputNames;
  }

  /**
   * Runs the plain model.
   *
   * @param inputs in the order of the model's arguments
   * @return its tensors, without compositions
   */
  public Results run(Tensor... inputs) {
    return run(Request.of(Stream.of(inputs).map(Input::of).toArray(Input[]::new)));
  }

  /**
   * Runs the plain model.
   *
   * @param request whose inputs are taken; splits and probes are not looked at
   * @return its tensors, without compositions
   */
  public Results run(Request request) {
    return new Results(ask(request, null, (c, model, r, out) -> AddendNative.addend_model_run(model, r, out)));
  }

  /**
   * Decomposes what the model computes, under the default context.
   *
   * @param inputs in the order of the model's arguments
   * @return the compositions of the outputs, and the report
   */
  public Results decompose(Input... inputs) {
    return decompose(Request.of(inputs));
  }

  /**
   * Decomposes what the model computes, under the default context.
   *
   * @param inputs by the names of the model's arguments
   * @return the compositions of the outputs, and the report
   */
  public Results decompose(Map<String, Input> inputs) {
    return decompose(Request.of(inputs));
  }

  /**
   * Decomposes what the model computes, under the default context.
   *
   * @param request what is asked
   * @return the compositions of the outputs, then those of the probes, and the report
   */
  public Results decompose(Request request) {
    return decompose(request, null);
  }

  /**
   * Decomposes what the model computes.
   *
   * @param request what is asked
   * @param context policy and listeners; {@code null} for the defaults
   * @return the compositions of the outputs, then those of the probes, and the report
   */
  public Results decompose(Request request, Context context) {
    return Thrown.run(() -> new Results(ask(request, context, AddendNative::addend_model_decompose)));
  }

  /**
   * Computes what each element of the inputs contributed to the targets of a request, under the default context, in one
   * backward sweep, which costs the same for ten components and for ten thousand.
   *
   * @param request whose inputs and targets are taken; probes are not looked at
   * @return an explanation for each target, and a tensor for each input
   */
  public Attribution attribute(Request request) {
    return attribute(request, null);
  }

  /**
   * Computes what each element of the inputs contributed to the targets of a request.
   *
   * @param request whose inputs and targets are taken; probes are not looked at
   * @param context policy and listeners; {@code null} for the defaults. A policy that looks at all components together,
   *     which no sweep back can, is refused.
   * @return an explanation for each target, and a tensor for each input
   */
  public Attribution attribute(Request request, Context context) {
    return Thrown.run(() -> new Attribution(
        ask(request, context, AddendNative::addend_model_attribute),
        request.namesOr(inputNames),
        request.insideSelectors()));
  }

  /**
   * Makes attributions of requests like this one ready for many rows, under the default context.
   *
   * @param request an example of what will be asked
   * @return the plan
   */
  public Plan plan(Request request) {
    return plan(request, null);
  }

  /**
   * Makes attributions of requests like this one ready for many rows. Where the request asks for the target of each
   * example, later ones may have another number of examples.
   *
   * @param request an example of what will be asked
   * @param context policy and listeners; {@code null} for the defaults
   * @return the plan
   * @throws AddendException if the model cannot be planned: it draws random numbers, writes its own memory, gives sizes
   *     that depend on elements, or computes what no operator shows
   */
  public Plan plan(Request request, Context context) {
    return Thrown.run(
        () -> new Plan(ask(request, context, AddendNative::addend_model_plan), request.namesOr(inputNames)));
  }

  /**
   * Runs the model once and keeps what it did, for inputs of these sizes.
   *
   * @param inputs in the order of the model's arguments
   * @return the program
   */
  public Program record(Tensor... inputs) {
    return record(Request.of(Stream.of(inputs).map(Input::of).toArray(Input[]::new)));
  }

  /**
   * Runs the model and keeps what it did. From the further examples of the request, of other sizes, the program learns
   * which numbers follow which size, so that it runs for other sizes too; what it learned from two it tries on a third.
   *
   * @param request whose inputs are taken; splits, probes and targets are not looked at
   * @return the program
   */
  public Program record(Request request) {
    return new Program(ask(request, null, (c, model, r, out) -> AddendNative.addend_model_record(model, r, out)));
  }

  /**
   * Whether a recording is the model, up to a relative difference of 1e-5: records twice, replays, and tries the further
   * examples of the request.
   *
   * @param request the inputs, and further examples to try: only they show what depends on the input
   * @return what was found
   */
  public TraceCheck checkTrace(Request request) {
    return checkTrace(request, 1e-5, true);
  }

  /**
   * Whether a recording is the model: records twice, replays, and tries the further examples of the request.
   *
   * @param request the inputs, and further examples to try: only they show what depends on the input
   * @param tolerance how far results may differ, relative
   * @param strict whether outputs that callers could change, lists and dictionaries, are worth a finding
   * @return what was found
   */
  public TraceCheck checkTrace(Request request, double tolerance, boolean strict) {
    return checkTrace(request, tolerance, strict, false);
  }

  /**
   * Whether a recording is the model: records twice, replays, and tries the further examples of the request.
   *
   * @param request the inputs, and further examples to try: only they show what depends on the input
   * @param tolerance how far results may differ, relative
   * @param strict whether outputs that callers could change, lists and dictionaries, are worth a finding
   * @param outOfPlace whether it also replays without writes in place, which finds aliases that the program does not know
   *     of
   * @return what was found
   */
  public TraceCheck checkTrace(Request request, double tolerance, boolean strict, boolean outOfPlace) {
    final String options = new JsonObject().put("tolerance", tolerance).put("strict", strict)
        .put("out_of_place", outOfPlace).toString();
    final long text =
        ask(request, null, (c, model, r, out) -> AddendNative.addend_model_check_trace(model, r, options, out));
    return TraceCheck.read(Out.text(out -> out[0] = text));
  }

  /**
   * Computes the interactions of groups: what their contributions owe to each other. It takes one attribution for each
   * group and one more.
   *
   * @param request one example with one target
   * @param concepts the groups; components that no concept names are groups by themselves
   * @return the interactions
   */
  public Interactions interactions(Request request, Concepts concepts) {
    try (Borrow borrow = new Borrow()) {
      final long groups = borrow.of(concepts);
      final long text =
          ask(request, null, (c, model, r, out) -> AddendNative.addend_model_interactions(c, model, r, groups, out));
      return new Interactions(Out.text(out -> out[0] = text));
    }
  }

  /**
   * Computes the interactions of all components, each of which is a group.
   *
   * @param request one example with one target
   * @return the interactions
   */
  public Interactions interactions(Request request) {
    return interactions(request, null);
  }

  /**
   * The exact Shapley values of the components for the model's first output, which is what other attributions are
   * compared with.
   *
   * @param request at most 16 components; the model runs 2 to their power times
   * @return a composition
   */
  public Composition shapley(Request request) {
    return new Composition(
        ask(request, null, (c, model, r, out) -> AddendNative.addend_model_shapley(model, r, out)));
  }

  @FunctionalInterface
  private interface Question {
    void ask(long context, long model, long request, long[] out);
  }

  private long ask(Request request, Context context, Question question) {
    try (Borrow borrow = new Borrow()) {
      final long c = borrow.of(context);
      final long model = borrow.of(this);
      final long r = borrow.of(request);
      return Out.handle(out -> question.ask(c, model, r, out));
    }
  }
}
