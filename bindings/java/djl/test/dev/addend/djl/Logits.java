package dev.addend.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.translate.Batchifier;
import ai.djl.translate.Translator;
import ai.djl.translate.TranslatorContext;

/** Rows of numbers to logits. */
final class Logits implements Translator<float[], float[]> {
  private final Batchifier batchifier;

  Logits(Batchifier batchifier) {
    this.batchifier = batchifier;
  }

  @Override
  public Batchifier getBatchifier() {
    return batchifier;
  }

  @Override
  public NDList processInput(TranslatorContext context, float[] row) {
    final NDArray array = context.getNDManager().create(row);
    return new NDList(batchifier == null ? array.expandDims(0) : array);
  }

  @Override
  public float[] processOutput(TranslatorContext context, NDList list) {
    return list.singletonOrThrow().toFloatArray();
  }
}
