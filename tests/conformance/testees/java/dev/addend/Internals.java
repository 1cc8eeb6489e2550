package dev.addend;

/** Internals for the conformance suite that are no business of users. */
public final class Internals {
  private Internals() {}

  /** How many handles of the library are not released yet. */
  public static long live() {
    return AddendNative.addend_debug_live(AddendHandleKind.ADDEND_HANDLE_ANY);
  }

  /** The interface that the library serves. */
  public static int abiVersion() {
    return AddendNative.addend_abi_version();
  }
}
