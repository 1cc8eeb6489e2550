import dev.addend.Explanation;
import dev.addend.Input;
import dev.addend.Model;
import dev.addend.Results;
import dev.addend.Target;
import dev.addend.Tensor;
import dev.addend.TensorFile;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** Writes a page: which pixels made an ONNX model say what it says of an image. */
public final class DigitsPage {
  private DigitsPage() {}

  public static void main(String[] arguments) throws IOException {
    if (arguments.length != 3) {
      System.err.println("usage: DigitsPage MODEL SAMPLE PAGE");
      System.exit(2);
    }
    try (Model model = Model.load(Path.of(arguments[0]));
        TensorFile sample = TensorFile.read(Path.of(arguments[1]));
        Tensor image = sample.tensor("input");
        // One component for each pixel, explained against an empty image.
        Results results = model.decompose(Input.of(image).splitAlong(2, 3).baseline(0))) {
      final Explanation explanation = results.explain(Target.largest());
      Files.write(Path.of(arguments[2]), explanation.toHtml().getBytes(StandardCharsets.UTF_8));
    }
  }
}
