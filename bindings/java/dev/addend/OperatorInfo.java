package dev.addend;

import java.util.List;

/** An operator that has a rule. */
public final class OperatorInfo {
  private final String name;
  private final String kind;
  private final List<String> schemas;

  OperatorInfo(String name, String kind, List<String> schemas) {
    this.name = name;
    this.kind = kind;
    this.schemas = schemas;
  }

  /**
   * Its name.
   *
   * @return for example {@code aten::softmax}
   */
  public String name() {
    return name;
  }

  /**
   * Which principle its rule follows.
   *
   * @return for example {@code path}
   */
  public String kind() {
    return kind;
  }

  /**
   * The schemas that the rule serves in this LibTorch.
   *
   * @return one for each overload
   */
  public List<String> schemas() {
    return schemas;
  }

  @Override
  public String toString() {
    return name + " (" + kind + ")";
  }
}
