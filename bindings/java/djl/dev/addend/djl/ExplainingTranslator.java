package dev.addend.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.translate.Batchifier;
import ai.djl.translate.Translator;
import ai.djl.translate.TranslatorContext;
import dev.addend.Attribution;
import dev.addend.Concepts;
import dev.addend.Reasons;
import dev.addend.Tensor;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import java.util.function.Function;

/**
 * A translator of DJL whose predictions come with their reasons. Prediction and input are those of another translator; what is
 * asked about the input is a function:
 *
 * <pre>{@code
 * Translator<float[], Explained<float[]>> translator = new ExplainingTranslator<>(
 *     scores, inputs -> plan.attribute(Request.of(Input.of(inputs.get(0)))));
 * try (Predictor<float[], Explained<float[]>> predictor = served.newPredictor(translator)) {
 *   System.out.println(predictor.predict(row));
 * }
 * }</pre>
 *
 * <p>Rows of a batch are explained one by one. Any number of predictors may share a translator if the function may be called
 * by several threads, as {@link dev.addend.Plan#attribute} and {@link dev.addend.Model#attribute} may.
 *
 * @param <I> what a row is
 * @param <O> what a prediction is
 */
public final class ExplainingTranslator<I, O> implements Translator<I, Explained<O>> {
  private static final String PENDING = "dev.addend.djl.pending";

  private final Translator<I, O> translator;
  private final Function<List<Tensor>, Attribution> explainer;
  private final Concepts concepts;

  /**
   * Adds explanations to the predictions of a translator.
   *
   * @param translator how a row becomes the model's inputs, and its outputs a prediction
   * @param explainer explains one row: gets the inputs of the model for it, in a batch of one where the translator makes
   *     batches, without a copy. The attribution and the inputs are closed once the explanations are read, so neither may
   *     stay in what the function keeps
   */
  public ExplainingTranslator(Translator<I, O> translator, Function<List<Tensor>, Attribution> explainer) {
    this(translator, explainer, null);
  }

  /**
   * Adds explanations and reasons in words to the predictions of a translator.
   *
   * @param translator as above
   * @param explainer as above
   * @param concepts what people are told of; the caller closes it after the last prediction
   */
  public ExplainingTranslator(
      Translator<I, O> translator, Function<List<Tensor>, Attribution> explainer, Concepts concepts) {
    this.translator = Objects.requireNonNull(translator, "translator");
    this.explainer = Objects.requireNonNull(explainer, "explainer");
    this.concepts = concepts;
  }

  @Override
  public Batchifier getBatchifier() {
    return translator.getBatchifier();
  }

  @Override
  public void prepare(TranslatorContext context) throws Exception {
    translator.prepare(context);
  }

  @Override
  public NDList processInput(TranslatorContext context, I input) throws Exception {
    final NDList inputs = translator.processInput(context, input);
    pending(context).add(inputs);
    return inputs;
  }

  @Override
  public Explained<O> processOutput(TranslatorContext context, NDList outputs) throws Exception {
    // DJL asks for the outputs of a batch in the order of its inputs.
    final NDList inputs = pending(context).remove();
    final O prediction = translator.processOutput(context, outputs);
    final Batchifier batchifier = getBatchifier();
    return explain(prediction, batchifier == null ? inputs : batchifier.batchify(new NDList[] {inputs}));
  }

  private Explained<O> explain(O prediction, NDList inputs) {
    final List<Tensor> tensors = new ArrayList<>();
    try {
      for (NDArray input : inputs) {
        tensors.add(Djl.toAddend(input));
      }
      try (Attribution attribution = explainer.apply(tensors)) {
        final Reasons reasons = concepts == null ? null : attribution.reasons(concepts);
        return new Explained<>(prediction, attribution.explanations(), reasons);
      }
    } finally {
      tensors.forEach(Tensor::close);
    }
  }

  /** The inputs of this call whose outputs have not come yet; a context serves one call. */
  @SuppressWarnings("unchecked")
  private static Deque<NDList> pending(TranslatorContext context) {
    Object pending = context.getAttachment(PENDING);
    if (pending == null) {
      pending = new ArrayDeque<NDList>();
      context.setAttachment(PENDING, pending);
    }
    return (Deque<NDList>) pending;
  }
}
