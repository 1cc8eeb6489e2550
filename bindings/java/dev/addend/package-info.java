/**
 * Explains neural networks by arithmetic that can be checked: every number that a model computes is written as a sum of
 * its causes.
 *
 * <pre>{@code
 * try (Model model = Model.load(Path.of("model.pt"));
 *      Tensor image = Tensor.of(pixels, 1, 1, 8, 8);
 *      Results results = model.decompose(Input.of(image).splitAlong(-2, -1))) {
 *   for (Contribution c : results.explain(Target.largest()).top(3)) {
 *     System.out.println(c.name() + " " + c.value());
 *   }
 * }
 * }</pre>
 *
 * <p><b>Closing.</b> Tensors, compositions, models, results, contexts and files hold memory outside the Java heap.
 * {@code close()} gives it back at once, a {@link dev.addend.Scope} does so for everything that was made inside it, and
 * the garbage collector is the net below both. Closing twice is harmless, the order of closing never matters, closing
 * while another thread computes waits for nobody and breaks nothing, and using what is closed throws
 * {@link java.lang.IllegalStateException}.
 *
 * <p><b>Threads.</b> Everything here is immutable and may be used by any number of threads at once, except for builders,
 * {@link dev.addend.TensorFile} while it is filled, and {@link dev.addend.Scope}.
 *
 * <p><b>Errors.</b> What the library finds wrong is an {@link dev.addend.AddendException}, whose
 * {@link dev.addend.AddendException#code() code} says what kind of mistake it is. {@code null} where a value is needed
 * is a {@link java.lang.NullPointerException}, as everywhere in Java.
 */
package dev.addend;
