package dev.addend;

/** The principle that an operator follows, from which its rule is derived. */
public enum Principle {
  /** Elementwise in one tensor, bends on the scale of 1, as tanh does. */
  POINTWISE,
  /** Elementwise in one tensor, bends on the scale of its argument, as the square root does. */
  POINTWISE_POWER,
  /** Elementwise in one tensor, with kinks, as relu has them. */
  POINTWISE_PIECEWISE,
  /** Differentiable, and nothing else is known. */
  PATH,
  /** Elementwise in several tensors, and differentiable. */
  PATH_ELEMENTWISE,
  /** Constant but for steps. */
  OPAQUE
}
