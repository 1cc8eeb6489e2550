import dev.addend.Addend;
import dev.addend.Attribution;
import dev.addend.Contribution;
import dev.addend.Explanation;
import dev.addend.Input;
import dev.addend.Model;
import dev.addend.Request;
import dev.addend.Results;
import dev.addend.Target;
import dev.addend.Tensor;
import dev.addend.TensorFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * usage: Bits MODELS. Prints the bits of explanations of the example models, forward and backward: a line for each row, as
 * bits_test.py has them of Python. The first line is the file of the LibTorch that computes.
 */
final class Bits {
  private static final int ROWS = 20;

  private Bits() {}

  public static void main(String[] arguments) throws IOException {
    Addend.setNumThreads(1);
    System.out.println(Files.readAllLines(Path.of("/proc/self/maps"))
        .stream()
        .filter(line -> line.contains("/libtorch_cpu."))
        .map(line -> line.substring(line.indexOf('/')))
        .findFirst()
        .orElseThrow());
    explain(Path.of(arguments[0], "breast_cancer"), 1);
    explain(Path.of(arguments[0], "digits"), 2, 3);
  }

  private static void explain(Path folder, long... dims) {
    try (Model model = Model.load(folder.resolve("model.pt"));
        TensorFile file = TensorFile.read(folder.resolve("heldout.safetensors"));
        Tensor heldOut = file.tensor("input")) {
      final float[] all = heldOut.toFloatArray();
      final long[] shape = heldOut.shape();
      final int size = all.length / (int) shape[0];
      shape[0] = 1;
      for (int row = 0; row < ROWS; row++) {
        try (Tensor tensor = Tensor.of(Arrays.copyOfRange(all, row * size, (row + 1) * size), shape)) {
          final Input input = Input.of(tensor).splitAlong(dims).baseline(0);
          try (Results forward = model.decompose(input);
              Attribution backward = model.attribute(Request.of(input).target(Target.element(0, 0)))) {
            System.out.println(line(forward.explain(Target.element(0, 0))));
            System.out.println(line(backward.explain(0)));
          }
        }
      }
    }
  }

  private static String line(Explanation explanation) {
    final List<String> bits = new ArrayList<>();
    bits.add(hex(explanation.value()));
    bits.add(hex(explanation.reference()));
    for (Contribution contribution : explanation.contributions()) {
      bits.add(hex(contribution.value()));
    }
    return String.join(" ", bits);
  }

  private static String hex(double number) {
    return String.format("%016x", Double.doubleToRawLongBits(number));
  }
}
