package dev.addend;

import java.util.Map;

/**
 * Options of a {@link Job}: where its rows are, and what its results hold. Immutable: each method gives a changed copy.
 */
public final class JobOptions extends Options<JobOptions> {
  private JobOptions(Map<String, String> members) {
    super(members, JobOptions::new);
  }

  /**
   * Names the files of the rows.
   *
   * @param files by input of the model, a {@code .npy} or {@code .safetensors} file whose tensor has the rows along
   *     dimension 0: {@code FILE} or {@code FILE#NAME}
   * @return the options
   */
  public static JobOptions rows(String... files) {
    return new JobOptions(Map.of()).with("inputs", files);
  }

  /**
   * Tensors of integers beside the first input, by which rows are put together.
   *
   * @param names their names
   * @return the changed copy
   */
  public JobOptions groups(String... names) {
    return with("groups", names);
  }

  /**
   * Names of the components; by their positions unless given.
   *
   * @param names one for each component
   * @return the changed copy
   */
  public JobOptions names(String... names) {
    return with("names", names);
  }

  /**
   * Names of the elements of the output.
   *
   * @param names one for each element
   * @return the changed copy
   */
  public JobOptions classes(String... names) {
    return with("classes", names);
  }

  /**
   * A description of concepts, in which results hold reasons.
   *
   * @param json as {@link Concepts#read} takes it
   * @return the changed copy
   */
  public JobOptions concepts(String json) {
    return withJson("concepts", JsonObject.one("concepts", json));
  }

  /**
   * Results hold no contributions, only reasons.
   *
   * @return the changed copy
   */
  public JobOptions withoutContributions() {
    return with("contributions", false);
  }

  /**
   * The format of results.
   *
   * @param format {@code safetensors}, which is the default, or {@code csv}
   * @return the changed copy
   */
  public JobOptions format(String format) {
    return with("format", format);
  }

  /**
   * A row that cannot be attributed ends its shard, instead of being listed.
   *
   * @return the changed copy
   */
  public JobOptions stopAtRefusal() {
    return with("stop_at_refusal", true);
  }

  /**
   * Sets the device on which workers compute.
   *
   * @param device {@code cpu}, or {@code cuda}: the GPU that each worker is given
   * @return the changed copy
   */
  public JobOptions device(String device) {
    return with("device", device);
  }

  /**
   * Sets the dtype that the numbers of the model are converted to.
   *
   * @param dtype {@code float32} or {@code float64}
   * @return the changed copy
   */
  public JobOptions dtype(String dtype) {
    return with("dtype", dtype);
  }

  /**
   * How many rows are attributed together, on which bits depend; 256 unless given.
   *
   * @param rows their number
   * @return the changed copy
   */
  public JobOptions batch(long rows) {
    return with("batch", rows);
  }

  /**
   * How many shards there are, about; as many as take ten seconds each unless given.
   *
   * @param count their number
   * @return the changed copy
   */
  public JobOptions shards(long count) {
    return with("shards", count);
  }
}
