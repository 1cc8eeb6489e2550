package dev.addend;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** Nested arguments, plain values and other methods, against what plain PyTorch has computed; programs in other forms. */
class ModelArgumentsTest extends ScopedTest {
  private static final Path FILE = Models.CONFORMANCE.resolve("structured.pt");

  private final Model model = Model.load(FILE);

  private static Tensor tensor(String name) {
    try (TensorFile file = TensorFile.read(Models.CONFORMANCE.resolve("structured.safetensors"))) {
      return file.tensor(name);
    }
  }

  private static Tensor awkward(String name) {
    try (TensorFile file = TensorFile.read(Models.CONFORMANCE.resolve("awkward.safetensors"))) {
      return file.tensor(name);
    }
  }

  private static Object[] arguments() {
    return new Object[] {
      Tuple.of(tensor("table"), tensor("memory")),
      Map.of("keep", tensor("keep"), "drop", tensor("drop")),
      List.of(Tuple.of(tensor("step_0"), 2), Tuple.of(tensor("step_1"), -1)),
      0.5,
      null,
      "each",
    };
  }

  private static void expect(String name, Tensor found) {
    assertArrayEquals(tensor(name).toFloatArray(), found.toFloatArray(), 1e-6f);
  }

  @Test
  void modelsTakeNestedArguments() {
    final Request asked = Request.ofArguments(arguments());
    expect("output", model.run(asked).tensor(0));
    final Program program = model.record(asked);
    expect("output", program.replay(asked, ReplayOptions.defaults()).tensor(0));
    expect("output", program.model().run(asked).tensor(0));
    assertTrue(model.checkTrace(asked.otherArguments(arguments())).ok());
    assertEquals(List.of(), model.requirements(asked));
    final Object[] others = arguments();
    others[3] = Double.POSITIVE_INFINITY;
    final AddendException error = assertThrows(
        AddendException.class, () -> program.replay(Request.ofArguments(others), ReplayOptions.defaults()));
    assertTrue(error.getMessage().contains("inf, not 0.5"), error.getMessage());
  }

  @Test
  void argumentsAreNamed() {
    final Object[] given = arguments();
    final Map<String, Object> named = new LinkedHashMap<>();
    named.put("bias", tensor("bias"));
    named.put("scale", 0.5f);
    named.put("steps", given[2]);
    named.put("masks", given[1]);
    named.put("pair", given[0]);
    expect("biased", model.run(Request.ofArguments(named)).tensor(0));
    named.put("unknown", true);
    assertThrows(AddendException.class, () -> model.run(Request.ofArguments(named)));
  }

  @Test
  void nestedInputsAreDecomposed() {
    final Object[] given = arguments();
    given[2] = List.of(Tuple.of(Input.of(tensor("step_0")).splitAlong(1), 2L), Tuple.of(tensor("step_1"), -1L));
    final Composition found = model.decompose(Request.ofArguments(given)).composition(0);
    expect("output", found.value());
    // A step goes straight to its own column, twice, and is halved.
    final float[] step = tensor("step_0").toFloatArray();
    final float[] components = found.components().toFloatArray();
    for (int k = 0; k < components.length; k++) {
      final boolean own = k / 6 == k % 3;
      assertEquals(own ? step[k % 6] : 0, components[k], 1e-6f);
    }
    final Attribution attribution = model.attribute(Request.ofArguments(given).target(Target.element(1, 2)));
    assertEquals(step[5], attribution.input("2.0.0").toFloatArray()[5], 1e-5f);
  }

  @Test
  void otherArgumentsAreRefused() {
    for (Object nonsense : Arrays.asList(new Object(), new long[] {1}, Map.of(1, 2.0), List.of(new Object()), 'c')) {
      assertThrows(IllegalArgumentException.class, () -> Request.ofArguments(nonsense));
    }
    final Tensor x = tensor("table");
    assertThrows(AddendException.class, () -> model.run(Request.ofArguments(1.5, null)));
    assertThrows(AddendException.class, () -> model.run(Request.ofArguments(x, "\"}")));
    Object deep = 1;
    for (int k = 0; k < 200; k++) {
      deep = Tuple.of(deep);
    }
    final Object tooDeep = deep;
    final AddendException error =
        assertThrows(AddendException.class, () -> model.run(Request.ofArguments(x, tooDeep)));
    assertTrue(error.getMessage().contains("too deeply"), error.getMessage());
    // Empty lists and maps are of tensors.
    final Request empty = Request.ofArguments(List.of(), Map.of(), new ArrayList<>());
    assertThrows(AddendException.class, () -> model.run(empty));
  }

  @Test
  void pathsOfTensorsAreUnique() {
    final Tensor x = tensor("table");
    final Map<String, Object> dotted = Map.of("p", Map.of("x.y", x), "p.x", Map.of("y", Input.of(x).splitAlong(0)));
    for (Executable asking : List.<Executable>of(
        () -> Request.ofArguments((Object) dotted), () -> Request.of().otherArguments((Object) dotted))) {
      final IllegalArgumentException error = assertThrows(IllegalArgumentException.class, asking);
      assertEquals("the request has an input 0.p.x.y already", error.getMessage());
    }
    final IllegalArgumentException error =
        assertThrows(IllegalArgumentException.class, () -> Request.ofArguments(dotted));
    assertEquals("the request has an input p.x.y already", error.getMessage());
  }

  @Test
  void otherMethodsThanForward() {
    expect("encoded", model.methods("encode").run(tensor("table")).tensor(0));
    final Model both = model.methods("encode", "decode");
    assertEquals(List.of("encode.table", "decode.states"), both.inputNames());
    final Program program = both.record(tensor("table"), tensor("step_0"));
    final Results replayed = program.replay(tensor("table"), tensor("step_0"));
    expect("encoded", replayed.tensor(0));
    expect("decoded", replayed.tensor(1));
    final AddendException missing = assertThrows(AddendException.class, () -> model.methods("missing"));
    assertEquals(AddendException.Code.NOT_FOUND, missing.code());
    final AddendException none = assertThrows(AddendException.class, () -> program.model().methods("encode"));
    assertEquals(AddendException.Code.UNIMPLEMENTED, none.code());
    assertThrows(IllegalArgumentException.class, () -> model.methods("encode,decode"));
    assertThrows(AddendException.class, () -> model.methods());
    assertThrows(NullPointerException.class, () -> model.methods((String) null));
  }

  @Test
  void programsRunInAnotherDtype() {
    final Model encode = model.methods("encode");
    final Program program = encode.record(tensor("table"));
    final double[] table = tensor("table").toDoubleArray();
    final Tensor exact = Tensor.of(table, 2, 4);
    // The oracle: LibTorch with parameters converted when the file was read.
    final double[] expected = Model.load(FILE, DType.FLOAT64).methods("encode").run(exact).tensor(0).toDoubleArray();
    final Tensor replayed = program.to(DType.FLOAT64).replay(exact).tensor(0);
    assertEquals(DType.FLOAT64, replayed.dtype());
    assertArrayEquals(expected, replayed.toDoubleArray());
    assertThrows(AddendException.class, () -> program.to(DType.FLOAT64).replay(tensor("table")));
    assertThrows(AddendException.class, () -> program.to(DType.INT64));
    assertThrows(NullPointerException.class, () -> program.to(null));
  }

  @Test
  void programsAreExported(@TempDir Path folder) {
    final Path path = folder.resolve("\u00e9.pt");
    final Model branching = Model.load(Models.CONFORMANCE.resolve("awkward.pt"));
    model.methods("encode").record(tensor("table")).exportTorchScript(path);
    expect("encoded", Model.load(path).run(tensor("table")).tensor(0));
    final Program guarded = branching.record(awkward("table"));
    final AddendException error = assertThrows(AddendException.class, () -> guarded.exportTorchScript(path));
    assertEquals(AddendException.Code.FAILED_PRECONDITION, error.code());
    assertEquals("aten::item", error.payload().get("op"));
  }

  @Test
  void programsAreReplayedOutOfPlace() {
    final Model writing = Model.load(Models.CONFORMANCE.resolve("awkward.pt"));
    final Program program = writing.record(awkward("table"));
    final Tensor other = awkward("same_branch");
    final ReplayOptions options = ReplayOptions.defaults().outOfPlace(true);
    assertArrayEquals(
        writing.run(other).tensor(0).toFloatArray(),
        program.replay(Request.of(Input.of(other)), options).tensor(0).toFloatArray());
    assertTrue(writing.checkTrace(Request.of(Input.of(other)), 1e-5, true, true).ok());
  }

  @Test
  void whatIsMissingIsToldBeforeARun() {
    final List<Requirement> few = model.requirements(Request.of());
    assertEquals("input", few.get(0).kind());
    assertTrue(few.get(0).isError());
    assertEquals("", few.get(0).position());
    assertTrue(few.get(0).message().contains("takes at least 4 inputs"), few.get(0).message());
    assertTrue(few.get(0).toString().startsWith("error, input: "), few.get(0).toString());
    final Program program = model.methods("encode").record(tensor("table"));
    assertEquals(List.of(), program.requirements(Request.of(Input.of(tensor("table")))));
    final List<Requirement> shape =
        program.requirements(Request.of(Input.of(tensor("keep"))), Context.builder().build());
    assertEquals(1, shape.size());
    assertFalse(shape.get(0).message().isEmpty());
  }
}
