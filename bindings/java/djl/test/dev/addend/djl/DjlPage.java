package dev.addend.djl;

import ai.djl.ndarray.NDList;
import ai.djl.repository.zoo.ZooModel;
import ai.djl.translate.Batchifier;
import dev.addend.Model;
import dev.addend.Tensor;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/** Fields that the programs of docs/djl.md use without defining them: a model that DJL serves, and a row. */
abstract class DjlPage extends Beside {
  final Logits scores = new Logits(Batchifier.STACK);
  ZooModel<NDList, NDList> served;
  Model model;
  Tensor sample;
  Tensor baseline;
  float[] numbers;

  @BeforeEach
  void make() throws Exception {
    served = served();
    model = Model.load(Djl.modelFile(served));
    numbers = rows()[0];
    sample = Tensor.of(numbers, 1, COLUMNS);
    baseline = baseline();
  }

  @AfterEach
  void close() {
    served.close();
  }
}
