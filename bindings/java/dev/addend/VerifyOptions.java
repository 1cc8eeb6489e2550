package dev.addend;

import java.nio.file.Path;
import java.util.Map;
import java.util.stream.Stream;

/**
 * Options of {@link AuditLog#verify}: the files it may use, and the expectations it checks. Immutable: each method
 * gives a changed copy.
 */
public final class VerifyOptions extends Options<VerifyOptions> {
  private static final VerifyOptions DEFAULTS = new VerifyOptions(Map.of());

  private VerifyOptions(Map<String, String> members) {
    super(members, VerifyOptions::new);
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
    return with("models", texts(files));
  }

  /**
   * Tensors, in which inputs are found that records do not hold.
   *
   * @param files {@code .safetensors} and {@code .npy}
   * @return the changed copy
   */
  public VerifyOptions inputs(Path... files) {
    return with("inputs", texts(files));
  }

  /**
   * How many records are computed again, drawn at random; all unless given.
   *
   * @param records their number
   * @return the changed copy
   */
  public VerifyOptions sample(long records) {
    return with("sample", records);
  }

  /**
   * The seed of the draw.
   *
   * @param seed a number that is not negative
   * @return the changed copy
   */
  public VerifyOptions seed(long seed) {
    return with("seed", seed);
  }

  /**
   * A hash that some record has to have.
   *
   * @param hash 64 hexadecimal digits
   * @return the changed copy
   */
  public VerifyOptions expect(String hash) {
    return with("expect", hash);
  }

  private static String[] texts(Path[] files) {
    return Stream.of(files).map(Text::of).toArray(String[]::new);
  }
}
