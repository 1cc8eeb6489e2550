import dev.addend.AddendException;
import dev.addend.Contribution;
import dev.addend.Explanation;
import dev.addend.Input;
import dev.addend.Model;
import dev.addend.Program;
import dev.addend.Results;
import dev.addend.Target;
import dev.addend.Tensor;
import dev.addend.TensorFile;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Map;

/** Decomposes a model that was recorded in Python. */
public final class Decompose {
  private Decompose() {}

  private static void decompose(Path folder) {
    try (Program program = Program.load(folder.resolve("program"));
        Model model = program.model();
        TensorFile sample = TensorFile.read(folder.resolve("sample.safetensors"));
        Tensor ids = sample.tensor("batch.input_ids");
        Tensor mask = sample.tensor("batch.attention_mask");
        // One component for each word, explained against padding.
        Results results = model.decompose(Map.of(
            "batch.input_ids", Input.of(ids).splitAlong(1).baseline(0),
            "batch.attention_mask", Input.of(mask)))) {
      Explanation explanation = results.explain(Target.largest());
      print("output %s = %.4f", explanation.target(), explanation.value());
      for (Contribution word : explanation.top(3)) {
        print("word %s: %+.4f", word.name(), word.value());
      }
      print("reference: %.4f", explanation.reference());
      print("recovery: %.4f", explanation.recovery());
    }
  }

  private static void print(String format, Object... values) {
    System.out.println(String.format(Locale.ROOT, format, values));
  }

  public static void main(String[] arguments) {
    if (arguments.length != 1) {
      System.err.println("usage: Decompose FOLDER");
      System.exit(2);
    }
    try {
      decompose(Path.of(arguments[0]));
    } catch (AddendException e) {
      System.err.println("decompose: " + e.getMessage());
      System.exit(1);
    }
  }
}
