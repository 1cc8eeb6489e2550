import dev.addend.AddendException;
import dev.addend.Contribution;
import dev.addend.Explanation;
import dev.addend.Input;
import dev.addend.Model;
import dev.addend.Results;
import dev.addend.Target;
import dev.addend.Tensor;
import dev.addend.TensorFile;
import java.nio.file.Path;
import java.util.Locale;

/** Explains which digit a model sees in an image: the same program in five languages. */
public final class Quickstart {
  private Quickstart() {}

  private static void explain(Path modelPath, Path samplePath) {
    try (Model model = Model.load(modelPath);
        TensorFile sample = TensorFile.read(samplePath);
        Tensor image = sample.tensor("input");
        // One component for each pixel, explained against an empty image.
        Results results = model.decompose(Input.of(image).splitAlong(2, 3).baseline(0))) {
      Explanation explanation = results.explain(Target.largest());
      print("output %s = %.4f", explanation.target(), explanation.value());
      for (Contribution pixel : explanation.top(3)) {
        print("pixel %s: %+.4f", pixel.name(), pixel.value());
      }
      print("leftover: %.1e", explanation.leftover());
      print("recovery error: %.1e", explanation.recoveryError());
    }
  }

  private static void print(String format, Object... values) {
    System.out.println(String.format(Locale.ROOT, format, values));
  }

  public static void main(String[] arguments) {
    if (arguments.length != 2) {
      System.err.println("usage: Quickstart MODEL SAMPLE");
      System.exit(2);
    }
    try {
      explain(Path.of(arguments[0]), Path.of(arguments[1]));
    } catch (AddendException e) {
      System.err.println("quickstart: " + e.getMessage());
      System.exit(1);
    }
  }
}
