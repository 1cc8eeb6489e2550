package dev.addend;

import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.io.TempDir;

/**
 * Fields that the programs of docs/java.md use without defining them: an image of an eight, and a model that has
 * learned digits.
 */
abstract class DocsPage extends ScopedTest {
  @TempDir Path folder;

  Model model = Models.load(Models.DIGITS);
  final Tensor image = Models.sample(Models.DIGITS);
  final float[] pixels = image.toFloatArray();
  final Tensor images = Tensor.of(fourTimes(pixels), 4, 1, 8, 8);
  final Request request = Request.of(Input.of(image).splitAlong(2, 3).baseline(0));
  final ExecutorService executor = Executors.newSingleThreadExecutor();

  final Tensor ids = Tensor.of(new long[] {3, 1, 4, 1}, 1, 4);
  final Tensor mask = Tensor.of(new float[] {1, 1, 1, 0}, 1, 4);
  final int maskToken = 0;
  final Tensor x = Tensor.of(new float[] {1, -2, 3}, 3);
  final Tensor left = Tensor.of(new float[] {1, 2}, 2);
  final Tensor right = Tensor.of(new float[] {3, 4}, 2);

  private static float[] fourTimes(float[] numbers) {
    final float[] all = new float[4 * numbers.length];
    for (int k = 0; k < all.length; ++k) {
      all[k] = numbers[k % numbers.length];
    }
    return all;
  }

  /** A file by the name that the page calls it. */
  Path file(String name) {
    return name.equals("model.pt2") ? Models.DIGITS.resolve(name) : folder.resolve(name);
  }

  private static Tensor call(String op, Object... arguments) {
    return Addend.call(op, arguments).tensor(0);
  }

  /** A model of ids and a mask: classes of the words that the mask keeps. */
  Model text() {
    final Map<String, Input> inputs = new LinkedHashMap<>();
    inputs.put("ids", Input.of(ids));
    inputs.put("mask", Input.of(mask));
    final Tensor weight = Tensor.of(new float[] {0, 0, 1, 2, 3, 1, -1, 2, 2, -2}, 5, 2);
    try (RecordingScope recording = new RecordingScope(Request.of(inputs))) {
      final Tensor words = call("aten::embedding", weight, ids);
      final Tensor kept = call("aten::mul", words, call("aten::unsqueeze", mask, -1));
      recording.addOutput(call("aten::softmax", call("aten::sum", kept, new long[] {1}), -1));
      return recording.end().model();
    }
  }

  @AfterEach
  void stop() {
    executor.shutdownNow();
  }
}
