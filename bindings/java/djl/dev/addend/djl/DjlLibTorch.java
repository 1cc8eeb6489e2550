package dev.addend.djl;

import ai.djl.engine.Engine;
import dev.addend.LibTorchLoader;

/** Loads DJL's PyTorch engine, and LibTorch with it, where Addend is used before DJL. */
public final class DjlLibTorch implements LibTorchLoader {
  /** For {@link java.util.ServiceLoader}. */
  public DjlLibTorch() {}

  @Override
  public void load() {
    Engine.getEngine(Djl.ENGINE);
  }
}
