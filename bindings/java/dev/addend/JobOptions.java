package dev.addend;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * Options of a {@link Job}: where its rows are, and what its results hold. Immutable: each method gives a changed copy.
 */
public final class JobOptions {
  private final List<String> inputs;
  private final Map<String, String> members;

  private JobOptions(List<String> inputs, Map<String, String> members) {
    this.inputs = inputs;
    this.members = members;
  }

  /**
   * Names the files of the rows.
   *
   * @param files by input of the model, a {@code .npy} or {@code .safetensors} file whose tensor has the rows along
   *     dimension 0: {@code FILE} or {@code FILE#NAME}
   * @return the options
   */
  public static JobOptions rows(String... files) {
    return new JobOptions(List.of(files), Map.of());
  }

  /**
   * Tensors of integers beside the first input, by which rows are put together.
   *
   * @param names their names
   * @return the changed copy
   */
  public JobOptions groups(String... names) {
    return withList("groups", names);
  }

  /**
   * Names of the components; by their positions unless given.
   *
   * @param names one for each component
   * @return the changed copy
   */
  public JobOptions names(String... names) {
    return withList("names", names);
  }

  /**
   * Names of the elements of the output.
   *
   * @param names one for each element
   * @return the changed copy
   */
  public JobOptions classes(String... names) {
    return withList("classes", names);
  }

  /**
   * A description of concepts, in which results hold reasons.
   *
   * @param json as {@link Concepts#read} takes it
   * @return the changed copy
   */
  public JobOptions concepts(String json) {
    return with("concepts", JsonObject.one("concepts", json));
  }

  /**
   * Results hold no contributions, only reasons.
   *
   * @return the changed copy
   */
  public JobOptions withoutContributions() {
    return with("contributions", "false");
  }

  /**
   * The format of results.
   *
   * @param format {@code safetensors}, which is the default, or {@code csv}
   * @return the changed copy
   */
  public JobOptions format(String format) {
    return with("format", JsonObject.quote(Objects.requireNonNull(format, "format")));
  }

  /**
   * A row that cannot be attributed ends its shard, instead of being listed.
   *
   * @return the changed copy
   */
  public JobOptions stopAtRefusal() {
    return with("stop_at_refusal", "true");
  }

  /**
   * Sets the device on which workers compute.
   *
   * @param device {@code cpu}, or {@code cuda}: the GPU that each worker is given
   * @return the changed copy
   */
  public JobOptions device(String device) {
    return with("device", JsonObject.quote(Objects.requireNonNull(device, "device")));
  }

  /**
   * Sets the dtype that the numbers of the model are converted to.
   *
   * @param dtype {@code float32} or {@code float64}
   * @return the changed copy
   */
  public JobOptions dtype(String dtype) {
    return with("dtype", JsonObject.quote(Objects.requireNonNull(dtype, "dtype")));
  }

  /**
   * How many rows are attributed together, on which bits depend; 256 unless given.
   *
   * @param rows their number
   * @return the changed copy
   */
  public JobOptions batch(long rows) {
    return with("batch", Long.toString(rows));
  }

  /**
   * How many shards there are, about; as many as take ten seconds each unless given.
   *
   * @param count their number
   * @return the changed copy
   */
  public JobOptions shards(long count) {
    return with("shards", Long.toString(count));
  }

  String toJson() {
    final JsonObject json = new JsonObject().put("inputs", inputs);
    members.forEach(json::putJson);
    return json.toString();
  }

  private JobOptions withList(String key, String... names) {
    final List<String> quoted = new ArrayList<>();
    for (String name : names) {
      quoted.add(JsonObject.quote(Objects.requireNonNull(name, key)));
    }
    return with(key, quoted.toString());
  }

  private JobOptions with(String key, String json) {
    final Map<String, String> changed = new LinkedHashMap<>(members);
    changed.put(key, json);
    return new JobOptions(inputs, changed);
  }
}
