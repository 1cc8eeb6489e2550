package conformance;

import dev.addend.Addend;
import dev.addend.Attribution;
import dev.addend.Cancellation;
import dev.addend.Composition;
import dev.addend.Context;
import dev.addend.DType;
import dev.addend.Direction;
import dev.addend.Input;
import dev.addend.Model;
import dev.addend.Named;
import dev.addend.Policy;
import dev.addend.Program;
import dev.addend.Request;
import dev.addend.Results;
import dev.addend.Scope;
import dev.addend.Target;
import dev.addend.Tensor;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;

/** The objects that a request describes. */
final class Asked {
  private static List<Object> lastName;
  private static Model lastModel;

  private Asked() {}

  /** Prepares a request's work, to be executed any number of times on any thread. Compositions go into the map. */
  static Supplier<Results> prepare(
      String verb, Message request, Map<String, Composition> compositions, Scope scope) {
    if (verb.equals("call")) {
      final String op = request.text("op");
      final Object[] arguments = arguments(request, compositions);
      final Context context = context(request);
      return () -> context == null ? Addend.call(op, arguments) : context.call(op, arguments);
    }
    final Request asked = modelRequest(request);
    final Model model = model(request, asked, scope);
    final Context context = context(request);
    if (verb.equals("run")) {
      return () -> model.run(asked);
    }
    return () -> context == null ? model.decompose(asked) : model.decompose(asked, context);
  }

  static Attribution attribute(Message request, Scope scope) {
    Request asked = modelRequest(request);
    for (String target : request.lines("targets")) {
      asked = asked.target(Target.parse(target));
    }
    asked = asked.memory(request.integer("memory_limit", 0));
    final Model model = model(request, asked, scope);
    final Context context = context(request);
    return context == null ? model.attribute(asked) : model.attribute(asked, context);
  }

  /** null: no context is passed. */
  private static Context context(Message request) {
    if (!request.has("policy") && !request.has("stop_after")) {
      return null;
    }
    Policy policy = Policy.defaults();
    for (String[] choice : request.fields("policy", 2)) {
      policy = policy.with(choice[0], choice[1]);
    }
    final Context.Builder builder = Context.builder().policy(policy);
    if (request.has("stop_after")) {
      final AtomicLong left = new AtomicLong(request.integer("stop_after", 0));
      builder.onProgress((stage, done, total) -> left.decrementAndGet() > 0);
    }
    return builder.build();
  }

  /** The arguments of a call; its compositions go into a map too. */
  static Object[] arguments(Message request, Map<String, Composition> compositions) {
    final Deque<List<Object>> lists = new ArrayDeque<>();
    final Deque<String> names = new ArrayDeque<>();
    lists.push(new ArrayList<>());
    for (String[] entry : request.fields("args", 3)) {
      if (entry[0].equals("list")) {
        lists.push(new ArrayList<>());
        names.push(entry[1]);
        continue;
      }
      final Object value = entry[0].equals("end") ? lists.pop() : argument(entry[0], entry[2], request, compositions);
      final String name = entry[0].equals("end") ? names.pop() : entry[1];
      lists.peek().add(name.isEmpty() ? value : Named.named(name, value));
    }
    return lists.pop().toArray();
  }

  private static Object argument(String kind, String value, Message request, Map<String, Composition> compositions) {
    switch (kind) {
      case "composition":
        return compositions.computeIfAbsent(value, key -> composition(key, request));
      case "tensor":
        return request.tensor(value);
      case "i64":
        return Long.parseLong(value);
      case "i64s":
        return Message.integers(value);
      case "f64":
        return Message.number(value);
      case "bool":
        return value.equals("1");
      case "str":
        return request.text(value);
      case "dtype":
        return Message.dtype(value);
      case "none":
        return null;
      default:
        throw new Message.ProtocolException("there is no kind of argument " + kind);
    }
  }

  static Composition composition(String key, Message request) {
    final Tensor baseline = request.find(key + ".baseline");
    switch (request.text(key + ".make")) {
      case "tensors":
        return Composition.of(
            request.tensor(key + ".components"), request.find(key + ".reference"), request.find(key + ".leftover"));
      case "diagonal":
        return Composition.diagonal(
            request.tensor(key + ".value"), baseline, request.integer(key + ".offset", 0),
            request.integer(key + ".numc", -1), Message.integers(request.text(key + ".dims")));
      case "labels":
        return Composition.fromLabels(
            request.tensor(key + ".value"), request.tensor(key + ".labels"), baseline,
            request.integer(key + ".numc", -1));
      default:
        throw new Message.ProtocolException("compositions are not made by " + request.text(key + ".make"));
    }
  }

  /** The model, or a program that is recorded of it, saved and loaded. */
  private static Model model(Message request, Request asked, Scope scope) {
    final Model model = model(request, scope);
    if (!request.has("program")) {
      return model;
    }
    try {
      final Path folder = Files.createTempDirectory("addend");
      try {
        model.record(asked).save(folder);
        return Program.load(folder).model();
      } finally {
        Files.deleteIfExists(folder.resolve("program.json"));
        Files.deleteIfExists(folder.resolve("weights.safetensors"));
        Files.delete(folder);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The model of the last request stays: the next one is often about the same. It leaves the request's scope. */
  static Model model(Message request, Scope scope) {
    final DType dtype = request.has("model_dtype") ? Message.dtype(request.text("model_dtype")) : null;
    if (!request.has("model")) {
      return Model.load(ByteBuffer.wrap(request.bytes("model")), dtype);
    }
    final List<Object> name = Arrays.asList(request.text("model"), dtype);
    if (!name.equals(lastName)) {
      forget();
      lastModel = scope.keep(Model.load(Path.of(request.text("model")), dtype));
      lastName = name;
    }
    return lastModel;
  }

  static void forget() {
    if (lastModel != null) {
      lastModel.close();
    }
    lastModel = null;
    lastName = null;
  }

  static Request modelRequest(Message request) {
    final List<Input> inputs = new ArrayList<>();
    final Map<String, Input> named = new LinkedHashMap<>();
    for (String[] entry : request.fields("inputs", 2)) {
      final Input input = input(entry[1], request);
      inputs.add(input);
      if (!entry[0].isEmpty() && named.put(entry[0], input) != null) {
        throw new IllegalArgumentException("two inputs are called " + entry[0]);
      }
    }
    Request asked = named.isEmpty() ? Request.of(inputs.toArray(new Input[0])) : Request.of(named);
    for (String probe : request.lines("probes")) {
      asked = asked.probe(probe);
    }
    if (request.has("cancel")) {
      final Cancellation cancellation = new Cancellation();
      cancellation.cancel();
      asked = asked.cancellation(cancellation);
    }
    if (request.has("direction")) {
      asked = asked.direction(Direction.valueOf(request.text("direction").toUpperCase(Locale.ROOT)));
    }
    return asked.checkEverything(request.has("everything"));
  }

  private static Input input(String key, Message request) {
    Input input = Input.of(request.tensor(key + ".value"));
    switch (request.text(key + ".split")) {
      case "plain":
        break;
      case "dims":
        input = input.splitAlong(Message.integers(request.text(key + ".dims")));
        break;
      case "labels":
        input = input.splitByLabels(request.tensor(key + ".labels"));
        break;
      case "parts":
        input = input.splitIntoParts(request.tensor(key + ".parts"));
        break;
      default:
        throw new Message.ProtocolException("inputs are not split by " + request.text(key + ".split"));
    }
    final Tensor baseline = request.find(key + ".baseline");
    if (request.has(key + ".baseline_number")) {
      input = input.baseline(Message.number(request.text(key + ".baseline_number")));
    } else if (baseline != null) {
      input = input.baseline(baseline);
    }
    if (request.has(key + ".first")) {
      input = input.firstComponent(request.integer(key + ".first", -1));
    }
    return input.names(request.lines(key + ".names"));
  }
}
