package dev.addend;

/**
 * Loads the LibTorch of another library for Java, so that Addend and that library share it whichever is used first: a
 * process must hold one LibTorch only.
 *
 * <p>Loaders are found by {@link java.util.ServiceLoader}. They are asked once, before Addend opens LibTorch: where this
 * process has loaded none, and neither {@code -Daddend.libtorch.path} nor {@code ADDEND_LIBTORCH_PATH} names one. A loader
 * must not use Addend.
 */
public interface LibTorchLoader {
  /** Loads LibTorch into this process. What is thrown is told as the reason why Addend cannot be loaded. */
  void load();
}
