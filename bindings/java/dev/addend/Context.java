package dev.addend;

import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;

/** A policy with what surrounds a run: log and progress listeners. Immutable. */
public final class Context extends NativeObject {
  private Context(long address) {
    super("context", address, AddendNative::addend_context_release);
  }

  /**
   * A context of a policy, without listeners.
   *
   * @param policy the policy
   * @return the context
   */
  public static Context of(Policy policy) {
    return builder().policy(policy).build();
  }

  /**
   * Starts with the defaults.
   *
   * @return a builder
   */
  public static Builder builder() {
    return new Builder();
  }

  /**
   * Calls an operator by its name: {@code context.call("aten::softmax", x, -1)}.
   *
   * @param op {@code aten::add.Tensor}, or {@code aten::add} where the arguments tell the overload
   * @param arguments in the order of the schema, {@link Named} ones behind them: compositions, tensors, numbers,
   *     booleans, text, a {@link DType}, {@code long[]}, lists, and {@code null} for None
   * @return what it gives: compositions where it got one and gives floating-point numbers
   */
  public Results call(String op, Object... arguments) {
    return Arguments.call(this, op, arguments);
  }

  /**
   * Every choice of the policy, those for parts of a model included.
   *
   * @return a JSON object of texts
   */
  public String policyJson() {
    return handle().text(AddendNative::addend_context_policy);
  }

  /** Collects what a context is made of. */
  public static final class Builder {
    private Policy policy = Policy.defaults();
    private LogCallback log;
    private ProgressCallback progress;
    private boolean detail;
    private final Map<String, Principle> rules = new LinkedHashMap<>();

    private Builder() {}

    /**
     * The choices that rules and sweeps consult.
     *
     * @param policy the policy
     * @return this builder
     */
    public Builder policy(Policy policy) {
      this.policy = Objects.requireNonNull(policy, "policy");
      return this;
    }

    /**
     * Who hears what a reader should know about runs.
     *
     * @param listener called on the threads that run
     * @return this builder
     */
    public Builder onLog(LogListener listener) {
      log = new LogCallback(listener);
      return this;
    }

    /**
     * Who hears how far runs are, and may end them.
     *
     * @param listener called on the threads that run
     * @return this builder
     */
    public Builder onProgress(ProgressListener listener) {
      progress = new ProgressCallback(listener);
      return this;
    }

    /**
     * A rule for an operator of your own; it replaces what the operator had.
     *
     * @param op for example {@code my_ops::smooth_abs}, or one overload of it
     * @param principle what is known of it
     * @return this builder
     */
    public Builder rule(String op, Principle principle) {
      rules.put(Objects.requireNonNull(op, "op"), Objects.requireNonNull(principle, "principle"));
      return this;
    }

    /**
     * Whether {@link AddendException#detail} tells where in C++ an error comes from.
     *
     * @param detail whether it does
     * @return this builder
     */
    public Builder detail(boolean detail) {
      this.detail = detail;
      return this;
    }

    /**
     * Makes the context.
     *
     * @return a context that later changes of this builder do not touch
     */
    public Context build() {
      final long options = Out.handle(AddendNative::addend_context_options_create);
      try {
        for (Map.Entry<String, String> choice : policy.choices().entrySet()) {
          AddendNative.addend_context_options_set_policy(options, choice.getKey(), choice.getValue());
        }
        if (log != null) {
          AddendNative.addend_context_options_set_log(options, log);
        }
        if (progress != null) {
          AddendNative.addend_context_options_set_progress(options, progress);
        }
        if (!rules.isEmpty()) {
          setRules(options);
        }
        AddendNative.addend_context_options_set_detail(options, detail ? 1 : 0);
        return new Context(Out.handle(out -> AddendNative.addend_context_create(options, out)));
      } finally {
        AddendNative.addend_context_options_release(options);
      }
    }

    private void setRules(long options) {
      final long added = Out.handle(AddendNative::addend_rules_create);
      try {
        rules.forEach((op, principle) ->
            AddendNative.addend_rules_add(added, op, principle.name().toLowerCase(Locale.ROOT)));
        AddendNative.addend_context_options_set_rules(options, added);
      } finally {
        AddendNative.addend_rules_release(added);
      }
    }
  }
}
