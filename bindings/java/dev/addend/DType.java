package dev.addend;

import java.util.Locale;

/** The type of the elements of a tensor. */
public enum DType {
  /** Unsigned integers of 8 bits. */
  UINT8(AddendDtype.ADDEND_UINT8),
  /** Integers of 8 bits: {@code byte}. */
  INT8(AddendDtype.ADDEND_INT8),
  /** Integers of 16 bits: {@code short}. */
  INT16(AddendDtype.ADDEND_INT16),
  /** Integers of 32 bits: {@code int}. */
  INT32(AddendDtype.ADDEND_INT32),
  /** Integers of 64 bits: {@code long}. */
  INT64(AddendDtype.ADDEND_INT64),
  /** Half precision. */
  FLOAT16(AddendDtype.ADDEND_FLOAT16),
  /** Single precision: {@code float}. */
  FLOAT32(AddendDtype.ADDEND_FLOAT32),
  /** Double precision: {@code double}. */
  FLOAT64(AddendDtype.ADDEND_FLOAT64),
  /** The upper half of single precision. */
  BFLOAT16(AddendDtype.ADDEND_BFLOAT16),
  /** Complex numbers of two {@link #FLOAT32}. */
  COMPLEX64(AddendDtype.ADDEND_COMPLEX64),
  /** Complex numbers of two {@link #FLOAT64}. */
  COMPLEX128(AddendDtype.ADDEND_COMPLEX128),
  /** One byte, 0 or 1. */
  BOOL(AddendDtype.ADDEND_BOOL);

  private final int number;

  DType(int number) {
    this.number = number;
  }

  /** The number of this dtype in the C interface: DLPack's type code + 256 * bits. */
  int number() {
    return number;
  }

  /** The number of a dtype, or 0, which stands for "any" and "as it is", for {@code null}. */
  static int numberOf(DType dtype) {
    return dtype == null ? 0 : dtype.number;
  }

  static DType of(int number) {
    for (DType dtype : values()) {
      if (dtype.number == number) {
        return dtype;
      }
    }
    throw new UnsupportedOperationException(
        "no DType for elements of DLPack's type " + number % 256 + " with " + number / 256 + " bits");
  }

  /**
   * The size of one element.
   *
   * @return the number of bytes
   */
  public int bytes() {
    return number / 256 / 8;
  }

  /**
   * The name that PyTorch uses, without its prefix.
   *
   * @return for example {@code float32}
   */
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
