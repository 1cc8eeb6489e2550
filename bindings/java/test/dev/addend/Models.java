package dev.addend;

import java.nio.file.Path;

/** The example models, and those of the conformance suite, whose paths begin at the root of the workspace. */
final class Models {
  static final Path DIGITS = Path.of("docs/examples/models/digits");
  static final Path BREAST_CANCER = Path.of("docs/examples/models/breast_cancer");

  static final Path CONFORMANCE = Path.of("tests/conformance/models");

  private Models() {}

  static Model load(Path folder) {
    return Model.load(folder.resolve("model.pt"));
  }

  static Tensor sample(Path folder) {
    try (TensorFile file = TensorFile.read(folder.resolve("sample.safetensors"))) {
      return file.tensor("input");
    }
  }

  static Tensor heldOut(Path folder) {
    try (TensorFile file = TensorFile.read(folder.resolve("heldout.safetensors"))) {
      return file.tensor("input");
    }
  }
}
