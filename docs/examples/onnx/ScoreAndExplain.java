import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import dev.addend.Contribution;
import dev.addend.Explanation;
import dev.addend.Input;
import dev.addend.Model;
import dev.addend.Results;
import dev.addend.Target;
import dev.addend.Tensor;
import dev.addend.TensorFile;
import java.nio.FloatBuffer;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Map;

/** Scores a row with ONNX Runtime, and explains the score with Addend, from one file and in one process. */
public final class ScoreAndExplain {
  private ScoreAndExplain() {}

  private static float[] score(String modelPath, Tensor row) throws OrtException {
    final OrtEnvironment environment = OrtEnvironment.getEnvironment();
    try (OrtSession session = environment.createSession(modelPath);
        OnnxTensor table = OnnxTensor.createTensor(environment, FloatBuffer.wrap(row.toFloatArray()), row.shape());
        OrtSession.Result result = session.run(Map.of("table", table))) {
      return ((float[][]) result.get(0).getValue())[0];
    }
  }

  private static void explain(String modelPath, Tensor row, Tensor mean, int label) {
    try (Model model = Model.load(Path.of(modelPath));
        Results results = model.decompose(Input.of(row).splitAlong(1).baseline(mean))) {
      final Explanation explanation = results.explain(Target.element(0, label));
      print("Addend: %.4f", explanation.value());
      for (Contribution column : explanation.top(3)) {
        print("  %s: %+.4f", column.name(), column.value());
      }
      print("  reference: %.4f, leftover: %.4f", explanation.reference(), explanation.leftover());
    }
  }

  private static void print(String format, Object... values) {
    System.out.println(String.format(Locale.ROOT, format, values));
  }

  public static void main(String[] arguments) throws OrtException {
    if (arguments.length != 3) {
      System.err.println("usage: ScoreAndExplain MODEL SAMPLE BASELINE");
      System.exit(2);
    }
    try (TensorFile sample = TensorFile.read(Path.of(arguments[1]));
        TensorFile baseline = TensorFile.read(Path.of(arguments[2]));
        Tensor row = sample.tensor("input");
        Tensor mean = baseline.tensor("")) {
      final float[] scores = score(arguments[0], row);
      final int label = scores[0] >= scores[1] ? 0 : 1;
      print("ONNX Runtime: %.4f", scores[label]);
      explain(arguments[0], row, mean, label);
    }
  }
}
