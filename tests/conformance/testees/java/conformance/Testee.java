package conformance;

import dev.addend.Addend;
import dev.addend.AddendException;
import dev.addend.Attribution;
import dev.addend.Composition;
import dev.addend.Contribution;
import dev.addend.DType;
import dev.addend.Explanation;
import dev.addend.Internals;
import dev.addend.Report;
import dev.addend.Results;
import dev.addend.Scope;
import dev.addend.Target;
import dev.addend.Tensor;
import dev.addend.TensorFile;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/** Executes the requests of the conformance suite through the Java face; see PROTOCOL.md. */
public final class Testee {
  private static final long KEPT = 2; // handles: the request and the answer are files of tensors
  private static final long PATIENCE_NANOS = 20_000_000_000L;

  private String device = "cpu";

  /** Answers what comes from standard input. */
  public static void main(String[] arguments) throws IOException {
    final OutputStream out = new BufferedOutputStream(new FileOutputStream(FileDescriptor.out));
    System.setOut(System.err);
    final InputStream in = new BufferedInputStream(System.in);
    final Testee testee = new Testee();
    String verb = "";
    for (byte[] blob; !verb.equals("bye") && (blob = Message.read(in)) != null; ) {
      verb = testee.answer(blob, out);
    }
  }

  /** Answers one request, gives its verb, and closes what was made for it. */
  private String answer(byte[] blob, OutputStream out) throws IOException {
    try (Scope scope = Scope.open()) {
      final Message request = Message.decode(blob, device);
      Message answer = new Message();
      try {
        execute(request.text("verb"), request, answer, scope);
        answer.put("code", "OK");
      } catch (RuntimeException e) {
        answer = failure(e);
      }
      answer.put("id", request.text("id"));
      answer.write(out);
      return request.text("verb");
    }
  }

  private static Message failure(RuntimeException e) {
    final Message answer = new Message();
    answer.put("code", code(e));
    answer.put("message", String.valueOf(e.getMessage()));
    if (e instanceof AddendException) {
      final Map<String, String> payload = ((AddendException) e).payload();
      answer.put("payload", List.of("op", "module_path").stream().filter(payload::containsKey)
          .map(key -> key + "\t" + payload.get(key)).collect(Collectors.joining("\n")));
    }
    return answer;
  }

  private static String code(RuntimeException e) {
    if (e instanceof AddendException) {
      return ((AddendException) e).code().name();
    }
    return e instanceof Message.ProtocolException ? "PROTOCOL" : "INVALID_ARGUMENT";
  }

  private void execute(String verb, Message request, Message answer, Scope scope) {
    switch (verb) {
      case "hello":
        hello(request, answer);
        break;
      case "call":
      case "run":
      case "decompose":
        final Map<String, Composition> compositions = new LinkedHashMap<>();
        final Results results = Asked.prepare(verb, request, compositions, scope).get();
        put(List.of(results), request, answer);
        if (request.has("echo")) {
          compositions.forEach((key, composition) -> putParts(composition, key, "components reference leftover", answer));
        }
        if (verb.equals("decompose")) {
          putReport(results, answer);
          putExplanations(results, request, answer);
        }
        break;
      case "attribute":
        final Attribution attribution = Asked.attribute(request, scope);
        for (int target = 0; target < attribution.size(); target++) {
          putExplanation(attribution.explain(target), "attribution." + target, answer);
        }
        break;
      case "shapley":
        final Composition shapley = request.has("op")
            ? Addend.callShapley(request.text("op"), Asked.arguments(request, new LinkedHashMap<>()))
            : Asked.model(request, scope).shapley(Asked.modelRequest(request));
        answer.put("results", "composition\t\t0");
        putParts(shapley, "0", parts(request), answer);
        break;
      case "threads":
        put(threads(request, scope), request, answer);
        break;
      case "lifecycle":
        lifecycle(request, answer);
        break;
      case "stats":
        Asked.forget();
        answer.put("live", Long.toString(live(KEPT) - KEPT));
        break;
      case "memory":
        memory(request, answer);
        break;
      case "read":
        final TensorFile file = TensorFile.decode(ByteBuffer.wrap(request.bytes("file")), "file");
        answer.put("names", String.join("\n", file.names()));
        file.names().forEach(name -> answer.put("file." + name, file.tensor(name)));
        break;
      case "operators":
        answer.put("operators", Addend.operators().stream().map(op -> op.name() + "\t" + op.kind())
            .collect(Collectors.joining("\n")));
        break;
      case "bye":
        break;
      default:
        throw new Message.ProtocolException("there is no verb " + verb);
    }
  }

  private void hello(Message request, Message answer) {
    device = request.has("device") ? request.text("device") : "cpu";
    if (request.has("threads")) {
      Addend.setNumThreads((int) request.integer("threads", 1));
    }
    Tensor.scalar(0).to(device); // fails where there is no such device
    answer.put("suite", "1");
    answer.put("language", "java");
    answer.put("library_version", Addend.version());
    answer.put("abi_version", Integer.toString(Internals.abiVersion()));
    answer.put("libtorch_version", Addend.libtorchVersion());
    answer.put("device", device);
    answer.put("devices", device.equals("cpu") ? "cpu" : "cpu " + device);
    answer.put("dtypes",
        "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 complex128");
    // Models compute on the CPU.
    answer.put("features", (device.equals("cpu") ? "models attribution directions distributions limits programs " : "")
        + "shapley explain threads lifecycle share stop read operators float16 bfloat16 complex");
    answer.put("about", "java\t" + System.getProperty("java.vm.name") + " " + System.getProperty("java.version"));
  }

  // Results

  private static void put(List<Results> runs, Message request, Message answer) {
    final List<String> entries = new ArrayList<>();
    for (Results results : runs) {
      final List<String> names = results.names();
      for (int index = 0; index < results.size(); index++) {
        final String key = Integer.toString(entries.size());
        String value = key;
        switch (results.kind(index)) {
          case COMPOSITION:
            putParts(results.composition(index), key, parts(request), answer);
            break;
          case TENSOR:
            answer.put(key, results.tensor(index));
            break;
          case NUMBER:
            value = Message.text(results.number(index));
            break;
          default:
            value = "";
        }
        final String kind = results.kind(index).name().toLowerCase(Locale.ROOT);
        entries.add(kind + "\t" + names.get(index) + "\t" + value);
      }
    }
    answer.put("results", String.join("\n", entries));
  }

  private static String parts(Message request) {
    return request.has("parts") ? request.text("parts") : "components reference leftover value";
  }

  private static void putParts(Composition composition, String key, String parts, Message answer) {
    for (String part : parts.split(" ")) {
      answer.put(key + "." + part, part(composition, part));
    }
  }

  private static Tensor part(Composition composition, String part) {
    switch (part) {
      case "components":
        return composition.components();
      case "reference":
        return composition.reference();
      case "leftover":
        return composition.leftover();
      case "residual":
        return composition.residual();
      case "recovery":
        return composition.recovery();
      case "value":
        return composition.value();
      default:
        throw new Message.ProtocolException("compositions have no " + part);
    }
  }

  private static void putReport(Results results, Message answer) {
    final Report report = results.report();
    final Map<String, Number> numbers = new LinkedHashMap<>();
    numbers.put("operators", report.operators());
    numbers.put("nodes", report.nodes());
    numbers.put("worst_recovery_error", report.worstRecoveryError());
    numbers.put("worst_bracket", report.worstBracket());
    numbers.put("failures", report.failures());
    numbers.put("absorbed", report.absorbed());
    numbers.put("absorbed_failures", report.absorbedFailures());
    numbers.put("path_ruled", report.pathRuled());
    numbers.put("stand_in_references", report.standInReferences());
    numbers.put("unattributed", report.unattributed());
    answer.put("report", numbers.entrySet().stream()
        .map(entry -> entry.getKey() + "\t" + Message.text(entry.getValue().doubleValue()))
        .collect(Collectors.joining("\n")));
    answer.put("notes", String.join("\n", report.notes()));
  }

  private static void putExplanations(Results results, Message request, Message answer) {
    int position = 0;
    for (String[] asked : request.fields("explain", 2)) {
      final Explanation explanation = results.explain(asked[0].isEmpty() ? null : asked[0], Target.parse(asked[1]));
      final String key = "explanation." + position++;
      putExplanation(explanation, key, answer);
    }
  }

  private static void putExplanation(Explanation explanation, String key, Message answer) {
    final List<Contribution> all = explanation.contributions();
    final List<Contribution> ranked = explanation.top(all.size());
    answer.put(key + ".target", explanation.target());
    answer.put(key + ".numbers", Tensor.of(new double[] {explanation.value(), explanation.reference(),
        explanation.leftover(), explanation.recovery(), explanation.recoveryError()}));
    answer.put(key + ".contributions", Tensor.of(all.stream().mapToDouble(Contribution::value).toArray()));
    answer.put(key + ".ranked", Tensor.of(ranked.stream().mapToLong(Contribution::component).toArray()));
    answer.put(key + ".names", all.stream().map(Contribution::name).collect(Collectors.joining("\n")));
  }

  // Threads and lifetimes

  private static List<Results> threads(Message request, Scope scope) {
    final Supplier<Results> asked = Asked.prepare(request.text("inner_verb"), request, new LinkedHashMap<>(), scope);
    final int count = (int) request.integer("count", 1);
    final ExecutorService pool = Executors.newFixedThreadPool(count);
    try {
      final List<Callable<Results>> calls = Collections.nCopies(count, asked::get);
      final List<Results> runs = new ArrayList<>();
      for (Future<Results> run : pool.invokeAll(calls)) {
        runs.add(run.get());
      }
      return runs;
    } catch (ExecutionException e) {
      throw (RuntimeException) e.getCause();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    } finally {
      pool.shutdown();
    }
  }

  private static void lifecycle(Message request, Message answer) {
    Asked.forget();
    if (live(KEPT) != KEPT) {
      throw new IllegalStateException((live(KEPT) - KEPT) + " handles of earlier requests are alive");
    }
    final Map<String, Composition> objects = new LinkedHashMap<>();
    final List<String> codes = new ArrayList<>();
    for (String line : request.lines("steps")) {
      try {
        codes.add(step(line.split("\t", -1), request, objects));
      } catch (RuntimeException e) {
        codes.add(code(e));
      }
    }
    answer.put("codes", String.join("\n", codes));
  }

  private static String step(String[] step, Message request, Map<String, Composition> objects) {
    final Composition object = step.length < 2 ? null : objects.get(step[step.length - 1]);
    switch (step[0]) {
      case "make":
        try (Scope scope = Scope.open()) {
          objects.put(step[1], scope.keep(Asked.composition(step[1], request)));
        }
        break;
      case "call":
        try (Results results = Addend.call(step[2], object)) {
          objects.put(step[1], results.composition(0));
        }
        break;
      case "read":
        object.components().close();
        break;
      case "release":
        object.close();
        break;
      case "release_elsewhere":
        join(new Thread(object::close));
        break;
      case "live":
        final long open = objects.values().stream().filter(one -> !one.isClosed()).count();
        return Long.toString(live(KEPT + open) - KEPT);
      default:
        throw new Message.ProtocolException("there is no step " + step[0]);
    }
    return "OK";
  }

  /**
   * How many handles are alive. Where they are more than expected, the garbage collector runs until they are not, or
   * for as long as a leak takes to be believed: the thread that releases what was collected comes when it comes.
   */
  private static long live(long expected) {
    final long deadline = System.nanoTime() + PATIENCE_NANOS;
    while (Internals.live() > expected && System.nanoTime() < deadline) {
      System.gc();
      LockSupport.parkNanos(1_000_000);
    }
    return Internals.live();
  }

  private static void memory(Message request, Message answer) {
    final DType dtype = request.tensor("data").dtype();
    final long[] shape = request.tensor("data").shape();
    final byte[] before = request.bytes("data");
    final ByteBuffer memory = ByteBuffer.allocateDirect(before.length).order(ByteOrder.nativeOrder()).put(before);
    memory.flip();
    final Tensor shared;
    final Tensor copied;
    if (dtype == DType.FLOAT64) {
      shared = Tensor.wrap(memory.asDoubleBuffer(), shape);
      copied = Tensor.of(memory.asDoubleBuffer(), shape);
    } else if (dtype == DType.FLOAT32) {
      shared = Tensor.wrap(memory.asFloatBuffer(), shape);
      copied = Tensor.of(memory.asFloatBuffer(), shape);
    } else {
      shared = Tensor.wrap(memory, dtype, shape);
      copied = Tensor.of(memory, dtype, shape);
    }
    memory.duplicate().put(request.bytes("after"));
    answer.put("shared", Message.shaped(shared, shape));
    answer.put("copied", Message.shaped(copied, shape));
  }

  private static void join(Thread thread) {
    thread.start();
    try {
      thread.join();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }
}
