package dev.addend;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class OperatorsTest extends ScopedTest {
  private static Composition vector(double... values) {
    return Composition.diagonal(Tensor.of(values), null, 0);
  }

  private static Set<String> publicMethods(Class<?> type) {
    return Stream.of(type.getMethods()).map(method -> method.getName()).collect(Collectors.toSet());
  }

  private static String camel(String name) {
    return Pattern.compile("_([a-z0-9])").matcher(name).replaceAll(match -> match.group(1).toUpperCase());
  }

  @Test
  void everyEverydayOperatorHasItsMethod() throws IOException {
    final Set<String> functions = publicMethods(Operators.class);
    final Set<String> methods = publicMethods(Composition.class);
    final Pattern signature = Pattern.compile("aten::(\\w+?)_?(?:\\.\\w+)?\\((Tensor\\??|\\S+) (\\w+).*");
    int entries = 0;
    for (String line : Files.readAllLines(Path.of("core/composition/everyday_operators.txt"))) {
      if (line.isEmpty() || line.startsWith("#")) {
        continue;
      }
      final Matcher matcher = signature.matcher(line);
      assertTrue(matcher.matches(), line);
      // Those that write (add_) are served by those that do not: compositions never change here.
      final String name = camel(matcher.group(1));
      assertTrue(functions.contains(name), "no function " + name);
      if (matcher.group(2).equals("Tensor") && !matcher.group(3).equals("condition")) {
        assertTrue(methods.contains(name), "no method " + name);
      }
      entries++;
    }
    assertTrue(entries > 100, "only " + entries + " entries");
  }

  @Test
  void valuesAreThoseOfTheOperators() {
    final double[] x = {0.5, -1, 2};
    final double sum = Math.exp(0.5) + Math.exp(-1) + Math.exp(2);
    assertArrayEquals(
        new double[] {Math.exp(0.5) / sum, Math.exp(-1) / sum, Math.exp(2) / sum},
        vector(x).softmax(0).recovery().toDoubleArray(),
        1e-12);
    assertArrayEquals(
        new double[] {Math.tanh(0.5), Math.tanh(-1), Math.tanh(2)},
        vector(x).tanh().recovery().toDoubleArray(),
        1e-12);
    assertArrayEquals(new double[] {0, 2}, vector(x).clamp(0, null).narrow(0, 1, 2).recovery().toDoubleArray());
  }

  @Test
  void trailingArgumentsMayBeLeftOut() {
    final Composition x = Composition.diagonal(Tensor.of(new double[] {1, 2, 3, 4, 5, 6}, 2, 3), null, 0);
    assertEquals(21, x.sum().value().item());
    assertArrayEquals(new double[] {5, 7, 9}, x.sum(0).value().toDoubleArray());
    assertArrayEquals(new long[] {1, 3}, x.sum(new long[] {0}, true).shape());
    assertArrayEquals(new long[] {3, 2}, x.permute(1, 0).shape());
    assertArrayEquals(new long[] {6}, x.flatten().shape());
    assertArrayEquals(new long[] {3, 2}, x.reshape(3, 2).shape());
    assertEquals(6, x.layerNorm(3).numc() * 3);
  }

  @Test
  void numbersAndTensorsStandBesideCompositions() {
    final Composition x = vector(1, 2);
    assertArrayEquals(new double[] {3, 4}, x.add(2).value().toDoubleArray());
    assertArrayEquals(new double[] {1.5, 3}, x.mul(1.5).value().toDoubleArray());
    assertArrayEquals(new double[] {11, 22}, x.add(Tensor.of(new double[] {10, 20})).value().toDoubleArray());
    assertArrayEquals(new double[] {2, 4}, x.add(x).value().toDoubleArray());
    assertArrayEquals(new double[] {21, 42}, x.add(Tensor.of(new double[] {10, 20}), 2).value().toDoubleArray());
  }

  @Test
  void functionsTakeListsAndTensorsFirst() {
    final Operators op = Operators.defaults();
    final Composition x = vector(1, 2);
    final Tensor t = Tensor.of(new double[] {3});
    assertArrayEquals(new double[] {1, 2, 3}, op.cat(List.of(x, t), 0).value().toDoubleArray());
    assertArrayEquals(
        new double[] {5}, op.einsum("i,i->", List.of(x, Tensor.of(new double[] {1, 2}))).value().toDoubleArray());
    assertArrayEquals(
        new double[] {1, 0},
        op.where(Tensor.of(new boolean[] {true, false}), x, 0).value().toDoubleArray());
  }

  @Test
  void severalResultsComeBack() {
    final ValuesAndIndices max = vector(1, 7, 3).max(0);
    assertEquals(7, max.values().value().item());
    assertEquals(1, max.indices().item());
    assertEquals(1, vector(1, 7, 3).argmax().item());
    final List<Composition> halves = vector(1, 2, 3, 4).chunk(2);
    assertEquals(2, halves.size());
    assertArrayEquals(new double[] {3, 4}, halves.get(1).value().toDoubleArray());
  }

  @Test
  void operatorsFollowTheirContext() {
    final Composition x = vector(1, 2, 3);
    final Context gradients = Context.of(Policy.defaults().nonlinearity(Policy.Nonlinearity.GRADIENT));
    // The derivative of x^3 is 3 x^2; the secant from 0 is x^2.
    assertArrayEquals(
        new double[] {3, 24, 81},
        diagonal(Operators.under(gradients).pow(x, 3)),
        1e-9);
    assertArrayEquals(new double[] {1, 8, 27}, diagonal(x.pow(3)), 1e-9);
  }

  private static double[] diagonal(Composition x) {
    final double[] components = x.components().toDoubleArray();
    final int n = (int) x.numc();
    final double[] diagonal = new double[n];
    for (int i = 0; i < n; i++) {
      diagonal[i] = components[i * n + i];
    }
    return diagonal;
  }

  @Test
  void operatorsAreCalledByName() {
    final Composition x = vector(1, -2);
    final Results relu = Addend.call("aten::leaky_relu", x, Named.named("negative_slope", 0.5));
    assertEquals(1, relu.size());
    assertEquals(Results.Kind.COMPOSITION, relu.kind(0));
    assertArrayEquals(new double[] {1, -1}, relu.composition(0).value().toDoubleArray());
    assertArrayEquals(new double[] {1, -1}, relu.tensor(0).toDoubleArray());
    final Results max = Addend.call("aten::max", x, 0, false);
    assertEquals(Results.Kind.TENSOR, max.kind(1));
    assertEquals(0, max.tensor(1).item());
    // Operators that write their argument return the new state; the composition stays as it was.
    assertArrayEquals(new double[] {2, -1}, Addend.call("aten::add_", x, 1).composition(0).value().toDoubleArray());
    assertArrayEquals(new double[] {1, -2}, x.value().toDoubleArray());
    assertEquals(DType.FLOAT32, Addend.call("aten::to.dtype", x, DType.FLOAT32).composition(0).dtype());
    assertArrayEquals(
        new double[] {1, -2, 1, -2},
        Addend.call("aten::cat", List.of(x, x), 0).composition(0).value().toDoubleArray());
    assertArrayEquals(
        new double[] {1, -2}, Addend.call("aten::clamp", x, null, 5).composition(0).value().toDoubleArray());
    assertArrayEquals(
        new long[] {2, 1}, Addend.call("aten::reshape", x, new int[] {2, 1}).composition(0).shape());
  }

  @Test
  void withoutCompositionsOperatorsJustRun() {
    final Results sum = Addend.call("aten::add", Tensor.of(new double[] {1, 2}), Tensor.of(new double[] {3, 4}));
    assertEquals(Results.Kind.TENSOR, sum.kind(0));
    assertArrayEquals(new double[] {4, 6}, sum.tensor(0).toDoubleArray());
  }

  @Test
  void wrongCallsAreExplained() {
    final Composition x = vector(1, 2);
    assertEquals(
        AddendException.Code.NOT_FOUND,
        assertThrows(AddendException.class, () -> Addend.call("aten::no_such_operator", x)).code());
    assertEquals(
        AddendException.Code.INVALID_ARGUMENT,
        assertThrows(AddendException.class, () -> Addend.call("aten::softmax", x, "text")).code());
    final IllegalArgumentException error =
        assertThrows(IllegalArgumentException.class, () -> Addend.call("aten::add", x, new Object()));
    assertTrue(error.getMessage().startsWith("operators take no java.lang.Object"), error.getMessage());
    assertThrows(AddendException.class, () -> x.matmul(Tensor.of(new double[3])));
    assertThrows(AddendException.class, () -> x.squeeze(7));
  }

  @Test
  void shapleyValuesOfASymmetricProductAreEqualShares() {
    final Composition product =
        Addend.callShapley("aten::prod", vector(2, 3));
    assertArrayEquals(new double[] {3, 3}, product.components().toDoubleArray(), 1e-12);
    assertEquals(6, product.recovery().item(), 1e-12);
  }

  @Test
  void registeredOperatorsAreListed() {
    final List<OperatorInfo> operators = Addend.operators();
    assertTrue(operators.size() > 100);
    final OperatorInfo softmax =
        operators.stream().filter(o -> o.name().equals("aten::softmax")).findFirst().orElseThrow();
    assertFalse(softmax.kind().isEmpty());
    assertTrue(softmax.schemas().get(0).startsWith("aten::softmax"), softmax.schemas().toString());
    assertEquals("aten::softmax (" + softmax.kind() + ")", softmax.toString());
  }
}
