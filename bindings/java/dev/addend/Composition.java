package dev.addend;

/**
 * A tensor of shape S as a sum: {@code numc} components, each of shape S, and a residual, which is reference plus
 * leftover. Operators are methods, {@code x.linear(weight).gelu()}; they compute under the default context, those of
 * {@link Operators#under} under another. Their arguments beside compositions are tensors and numbers.
 */
public final class Composition extends CompositionOperators implements Operand {
  Composition(long address) {
    super("composition", address, AddendNative::addend_composition_release);
  }

  /**
   * A composition of given parts, without leftover.
   *
   * @param components [numc, *S]
   * @param reference of shape S; {@code null} for zeros
   * @return the composition
   */
  public static Composition of(Tensor components, Tensor reference) {
    return of(components, reference, null);
  }

  /**
   * A composition of given parts.
   *
   * @param components [numc, *S]
   * @param reference of shape S; {@code null} for zeros
   * @param leftover of shape S; {@code null} for zeros
   * @return the composition
   */
  public static Composition of(Tensor components, Tensor reference, Tensor leftover) {
    return of(components, reference, leftover, 0);
  }

  /**
   * Makes a composition as {@link #of(Tensor, Tensor, Tensor)} does, for gradients: autograd follows what is computed
   * from it, see {@link #grad}.
   *
   * @param components [numc, *S]
   * @param reference of shape S; {@code null} for zeros
   * @param leftover of shape S; {@code null} for zeros
   * @return the composition
   */
  public static Composition inGraph(Tensor components, Tensor reference, Tensor leftover) {
    return of(components, reference, leftover, 1);
  }

  private static Composition of(Tensor components, Tensor reference, Tensor leftover, int inGraph) {
    try (Borrow borrow = new Borrow()) {
      final long c = borrow.of(components);
      final long r = borrow.of(reference);
      final long l = borrow.of(leftover);
      return new Composition(
          Out.handle(out -> AddendNative.addend_composition_from_tensors(c, r, l, inGraph, out)));
    }
  }

  /**
   * One component for each position along some dimensions: it is value - baseline there and zero elsewhere.
   *
   * @param value what to split
   * @param baseline what means "nothing"; {@code null} for zeros
   * @param dims the dimensions, negative ones counted from the end; without any the whole value is one component
   * @return the composition
   */
  public static Composition diagonal(Tensor value, Tensor baseline, long... dims) {
    return diagonal(value, baseline, 0, -1, dims);
  }

  /**
   * Splits as {@link #diagonal(Tensor, Tensor, long...)} does, as a part of a longer component axis.
   *
   * @param value what to split
   * @param baseline what means "nothing"; {@code null} for zeros
   * @param offset the first component
   * @param numc the number of components; -1 for no more than needed
   * @param dims the dimensions
   * @return the composition
   */
  public static Composition diagonal(Tensor value, Tensor baseline, long offset, long numc, long[] dims) {
    try (Borrow borrow = new Borrow()) {
      final long v = borrow.of(value);
      final long b = borrow.of(baseline);
      return new Composition(
          Out.handle(out -> AddendNative.addend_composition_diagonal(v, dims, b, offset, numc, out)));
    }
  }

  /**
   * One component for each label.
   *
   * @param value what to split
   * @param labels integers of the value's shape, or of its leading dimensions; -1 for no component
   * @param baseline what means "nothing"; {@code null} for zeros
   * @return a composition of as many components as the largest label + 1
   */
  public static Composition fromLabels(Tensor value, Tensor labels, Tensor baseline) {
    return fromLabels(value, labels, baseline, -1);
  }

  /**
   * Splits as {@link #fromLabels(Tensor, Tensor, Tensor)} does, with more components than there are labels.
   *
   * @param value what to split
   * @param labels integers of the value's shape, or of its leading dimensions; -1 for no component
   * @param baseline what means "nothing"; {@code null} for zeros
   * @param numc the number of components; -1 for the largest label + 1
   * @return the composition
   */
  public static Composition fromLabels(Tensor value, Tensor labels, Tensor baseline, long numc) {
    try (Borrow borrow = new Borrow()) {
      final long v = borrow.of(value);
      final long l = borrow.of(labels);
      final long b = borrow.of(baseline);
      return new Composition(
          Out.handle(out -> AddendNative.addend_composition_from_labels(v, l, b, numc, out)));
    }
  }

  /**
   * How many components there are.
   *
   * @return the length of the component axis
   */
  public long numc() {
    return handle().number(AddendNative::addend_composition_numc);
  }

  @Override
  public long[] shape() {
    return handle().numbers(AddendNative::addend_composition_num_dims, AddendNative::addend_composition_size);
  }

  @Override
  public DType dtype() {
    return DType.of(handle().tell(AddendNative::addend_composition_dtype));
  }

  /**
   * The device of the parts.
   *
   * @return for example {@code cpu} or {@code cuda:0}
   */
  public String device() {
    return handle().tell(AddendNative::addend_composition_device);
  }

  /**
   * All components.
   *
   * @return [numc, *S], sharing memory
   */
  public Tensor components() {
    return part(AddendPart.ADDEND_COMPONENTS);
  }

  /**
   * One component.
   *
   * @param index which
   * @return of shape S, sharing memory
   */
  public Tensor component(long index) {
    return new Tensor(
        handle().made((composition, out) -> AddendNative.addend_composition_component(composition, index, out)));
  }

  /**
   * The reference: the tensor's value when the recorded operators run on the baseline.
   *
   * @return of shape S
   */
  public Tensor reference() {
    return part(AddendPart.ADDEND_REFERENCE);
  }

  /**
   * The leftover: what the policy could not attribute.
   *
   * @return of shape S
   */
  public Tensor leftover() {
    return part(AddendPart.ADDEND_LEFTOVER);
  }

  /**
   * Reference plus leftover.
   *
   * @return of shape S
   */
  public Tensor residual() {
    return part(AddendPart.ADDEND_RESIDUAL);
  }

  /**
   * The sum of components and residual, equal to the value up to rounding.
   *
   * @return of shape S
   */
  public Tensor recovery() {
    return part(AddendPart.ADDEND_RECOVERY);
  }

  /**
   * The value that the model or the operators computed themselves.
   *
   * @return of shape S
   */
  public Tensor value() {
    return part(AddendPart.ADDEND_VALUE);
  }

  /**
   * Some of the components with the residual.
   *
   * @param indices which; negative ones count from the end
   * @return a composition of as many components
   */
  public Composition selectComponents(long... indices) {
    return select(indices, 1);
  }

  /**
   * Some of the components without the residual, which becomes zero.
   *
   * @param indices which; negative ones count from the end
   * @return a composition of as many components
   */
  public Composition selectComponentsAlone(long... indices) {
    return select(indices, 0);
  }

  /**
   * The gradient of sum(cotangent * this), summed over components, reference and leftover, with respect to the parts of
   * an input.
   *
   * @param input made by {@link #inGraph}, from which this was computed
   * @param cotangent of the shape of this composition
   * @return a composition of the shape of {@code input}
   */
  public Composition grad(Composition input, Composition cotangent) {
    try (Borrow borrow = new Borrow()) {
      final long y = borrow.of(this);
      final long c = borrow.of(cotangent);
      final long x = borrow.of(input);
      return new Composition(Out.handle(out -> AddendNative.addend_composition_grad(y, c, x, out)));
    }
  }

  /**
   * Explains one number of it.
   *
   * @param target which
   * @return the explanation, whose components are named by their position
   */
  public Explanation explain(Target target) {
    return new Explanation(handle().made(
        (composition, out) -> AddendNative.addend_composition_explain(composition, target.toString(), out)));
  }

  /**
   * All parts, as PyTorch prints tensors.
   *
   * @return several lines
   */
  @Override
  public String toString() {
    if (isClosed()) {
      return "closed composition";
    }
    return handle().text(AddendNative::addend_composition_to_string);
  }

  private Tensor part(int part) {
    return new Tensor(handle().made((composition, out) -> AddendNative.addend_composition_part(composition, part, out)));
  }

  private Composition select(long[] indices, int withResidual) {
    return new Composition(handle().made(
        (composition, out) -> AddendNative.addend_composition_select(composition, indices, withResidual, out)));
  }
}
