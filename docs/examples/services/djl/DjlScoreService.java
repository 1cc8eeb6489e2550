import ai.djl.MalformedModelException;
import ai.djl.inference.Predictor;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.repository.zoo.Criteria;
import ai.djl.repository.zoo.ModelNotFoundException;
import ai.djl.repository.zoo.ZooModel;
import ai.djl.translate.Batchifier;
import ai.djl.translate.TranslateException;
import ai.djl.translate.Translator;
import ai.djl.translate.TranslatorContext;
import dev.addend.Attribution;
import dev.addend.Cancellation;
import dev.addend.djl.Djl;
import dev.addend.djl.Explained;
import dev.addend.djl.ExplainingTranslator;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;

/**
 * The service of ScoreService.java over DJL: DJL serves the model, and a translator explains each prediction from the arrays
 * that DJL made of the row.
 */
public final class DjlScoreService {
  private DjlScoreService() {}

  public static void main(String[] arguments) throws IOException {
    ScoreService.serve(arguments, DjlScorer::new);
  }

  /** Predictions by DJL, their reasons by Addend, from one file and with one LibTorch. */
  private static final class DjlScorer implements ScoreService.Scorer {
    private final ZooModel<NDList, NDList> served;
    private final ScoreService.PlanScorer explainer;

    DjlScorer(Path modelPath, Path baselinePath, Path samplePath, ScoreService.Keeper keeper) {
      try {
        served = Criteria.builder()
            .setTypes(NDList.class, NDList.class)
            .optEngine("PyTorch")
            .optModelPath(modelPath)
            .build()
            .loadModel();
      } catch (IOException | ModelNotFoundException | MalformedModelException e) {
        throw new IllegalArgumentException(modelPath + " cannot be served: " + e.getMessage(), e);
      }
      try {
        explainer = new ScoreService.PlanScorer(Djl.modelFile(served), baselinePath, samplePath, keeper);
      } catch (RuntimeException | Error e) {
        served.close();
        throw e;
      }
    }

    @Override
    public List<String> columns() {
      return explainer.columns();
    }

    @Override
    public ScoreService.Answer score(float[] row, Cancellation cancellation) {
      // A translator for each request, because each has a time of its own.
      final ScoreService.Answer[] answer = new ScoreService.Answer[1];
      final Translator<float[], Explained<Float>> translator = new ExplainingTranslator<>(new MarginTranslator(), inputs -> {
        final Attribution attribution = explainer.attribute(inputs.get(0), cancellation);
        try {
          answer[0] = explainer.answer(attribution);
          return attribution;
        } catch (RuntimeException | Error e) {
          attribution.close();
          throw e;
        }
      });
      try (Predictor<float[], Explained<Float>> predictor = served.newPredictor(translator)) {
        predictor.predict(row);
        return answer[0];
      } catch (TranslateException e) {
        // Errors of Addend, such as that the time is over, come as the cause.
        throw e.getCause() instanceof RuntimeException ? (RuntimeException) e.getCause() : new IllegalStateException(e);
      }
    }

    @Override
    public void close() {
      explainer.close();
      served.close();
    }
  }

  /** A row to the logit of the first class minus that of the second. */
  private static final class MarginTranslator implements Translator<float[], Float> {
    @Override
    public Batchifier getBatchifier() {
      return Batchifier.STACK;
    }

    @Override
    public NDList processInput(TranslatorContext context, float[] row) {
      return new NDList(context.getNDManager().create(row));
    }

    @Override
    public Float processOutput(TranslatorContext context, NDList outputs) {
      final NDArray logits = outputs.singletonOrThrow();
      return logits.getFloat(0) - logits.getFloat(1);
    }
  }
}
