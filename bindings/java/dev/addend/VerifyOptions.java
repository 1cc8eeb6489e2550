package dev.addend;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * Options of {@link AuditLog#verify}: the files it may use, and the expectations it checks. Immutable: each method
 * gives a changed copy.
 */
public final class VerifyOptions {
  private static final VerifyOptions DEFAULTS = new VerifyOptions(List.of(), List.of(), Map.of());

  private final List<String> models;
  private final List<String> inputs;
  private final Map<String, String> members;

  private VerifyOptions(List<String> models, List<String> inputs, Map<String, String> members) {
    this.models = models;
    this.inputs = inputs;
    this.members = members;
  }

  /**
   * The chain alone.
   *
   * @return the options
   */
  public static VerifyOptions defaults() {
    return DEFAULTS;
  }

  /**
   * Models, whose records are computed again.
   *
   * @param files TorchScript files, exported programs and folders of recorded programs
   * @return the changed copy
   */
  public VerifyOptions models(Path... files) {
    return new VerifyOptions(texts(files), inputs, members);
  }

  /**
   * Tensors, in which inputs are found that records do not hold.
   *
   * @param files {@code .safetensors} and {@code .npy}
   * @return the changed copy
   */
  public VerifyOptions inputs(Path... files) {
    return new VerifyOptions(models, texts(files), members);
  }

  /**
   * How many records are computed again, drawn at random; all unless given.
   *
   * @param records their number
   * @return the changed copy
   */
  public VerifyOptions sample(long records) {
    return with("sample", Long.toString(records));
  }

  /**
   * The seed of the draw.
   *
   * @param seed a number that is not negative
   * @return the changed copy
   */
  public VerifyOptions seed(long seed) {
    return with("seed", Long.toString(seed));
  }

  /**
   * A hash that some record has to have.
   *
   * @param hash 64 hexadecimal digits
   * @return the changed copy
   */
  public VerifyOptions expect(String hash) {
    return with("expect", JsonObject.quote(Objects.requireNonNull(hash, "hash")));
  }

  String toJson() {
    final JsonObject json = new JsonObject().put("models", models).put("inputs", inputs);
    members.forEach(json::putJson);
    return json.toString();
  }

  private VerifyOptions with(String key, String json) {
    final Map<String, String> changed = new LinkedHashMap<>(members);
    changed.put(key, json);
    return new VerifyOptions(models, inputs, changed);
  }

  private static List<String> texts(Path... files) {
    final List<String> texts = new ArrayList<>();
    for (Path file : files) {
      texts.add(Text.of(file));
    }
    return List.copyOf(texts);
  }
}
