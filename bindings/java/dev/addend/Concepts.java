package dev.addend;

/**
 * A description of the concepts that people are told of: which components count as one, which sign speaks against them,
 * how many reasons are given and their texts. It is read once and serves any number of attributions and threads.
 *
 * <pre>{@code
 * try (Concepts concepts = Concepts.read(Files.readString(Path.of("concepts.json")));
 *     Attribution attribution = model.attribute(request)) {
 *   for (Decision decision : attribution.reasons(concepts).decisions()) {
 *     decision.reasons().forEach(reason -> System.out.println(reason.text()));
 *   }
 * }
 * }</pre>
 */
public final class Concepts extends NativeObject {
  private Concepts(long address) {
    super("concepts", address, AddendNative::addend_concepts_release);
  }

  /**
   * Reads a description.
   *
   * @param json <code>{"format": "addend.concepts", "version": 1, ...}</code>
   * @return the concepts
   * @throws AddendException if a key, a concept or a text is not as the page on reasons says
   */
  public static Concepts read(String json) {
    return new Concepts(Out.handle(out -> AddendNative.addend_concepts_read(json, out)));
  }
}
