using System.Runtime.InteropServices;
using Addend.Native;

namespace Addend;

/// <summary>How much a message of a run matters.</summary>
public enum MessageLevel
{
    /// <summary>Good to know.</summary>
    Info = AddendNative.ADDEND_LOG_INFO,

    /// <summary>Look at it.</summary>
    Warning = AddendNative.ADDEND_LOG_WARNING,
}

/// <summary>The principle that an operator follows, from which its rule is derived.</summary>
public enum Principle
{
    /// <summary>Elementwise in one tensor, bends on the scale of 1, as tanh does.</summary>
    Pointwise,

    /// <summary>Elementwise in one tensor, bends on the scale of its argument, as the square root does.</summary>
    PointwisePower,

    /// <summary>Elementwise in one tensor, with kinks, as relu has them.</summary>
    PointwisePiecewise,

    /// <summary>Differentiable, and nothing else is known.</summary>
    Path,

    /// <summary>Elementwise in several tensors, and differentiable.</summary>
    PathElementwise,

    /// <summary>Constant but for steps.</summary>
    Opaque,
}

/// <summary>How far a run is.</summary>
/// <param name="Stage">What it does: <c>trace</c>, <c>linearize</c> or <c>sweep</c>.</param>
/// <param name="Done">How many steps of it are done.</param>
/// <param name="Total">How many there are; null where that is not known.</param>
public readonly record struct RunProgress(string Stage, long Done, long? Total);

/// <summary>The policy, the callbacks and the settings of a <see cref="Context"/>.</summary>
public sealed record ContextOptions
{
    /// <summary>The policy.</summary>
    public Policy Policy { get; init; } = new();

    /// <summary>Gets what a reader should know about a run, on the thread that runs. What it throws is thrown by the
    /// run.</summary>
    public Action<MessageLevel, string>? Log { get; init; }

    /// <summary>Is told how far a run is, on the thread that runs. What it throws ends the run and is thrown by it.
    /// <see cref="Progress{T}"/> passes reports on to other threads: what its handler throws does not end the run. A class
    /// of your own that implements <see cref="IProgress{T}"/> is called by the run itself.</summary>
    public IProgress<RunProgress>? Progress { get; init; }

    /// <summary>Rules for operators of your own, which replace what the operators had: <c>my_ops::smooth_abs</c>, or one
    /// overload of it.</summary>
    public IReadOnlyDictionary<string, Principle> Rules { get; init; } = new Dictionary<string, Principle>();

    /// <summary>Whether errors tell where in the library's C++ they come from.</summary>
    public bool Detail { get; init; }
}

/// <summary>A policy with what surrounds a run. It never changes, and may be used by any number of threads at
/// once.</summary>
public sealed class Context : AddendObject
{
    /// <summary>Makes it of a policy.</summary>
    /// <param name="policy">The policy.</param>
    public Context(Policy policy)
        : this(new ContextOptions { Policy = policy })
    {
    }

    /// <summary>Makes it of options.</summary>
    /// <param name="options">The options.</param>
    /// <exception cref="ArgumentException">The policy has no such choice.</exception>
    public Context(ContextOptions options)
        : base(Create(options))
    {
    }

    /// <summary>Every choice of the policy as a JSON object of texts, overrides included.</summary>
    public string PolicyJson => Text.Of(Handle, AddendNative.addend_context_policy);

    private ContextHandle Handle => (ContextHandle)OwnedHandle;

    internal static ContextHandle HandleOf(Context? context) => context is null ? ContextHandle.Null : context.Handle;

    private static ContextHandle Create(ContextOptions options)
    {
        ArgumentNullException.ThrowIfNull(options);
        ArgumentNullException.ThrowIfNull(options.Policy);
        AddendNative.addend_context_options_create(out ContextOptionsHandle building);
        using (building)
        {
            foreach ((string key, string value) in options.Policy.Choices())
            {
                AddendNative.addend_context_options_set_policy(
                    building, Text.Checked(key, nameof(key)), Text.Checked(value, nameof(value)));
            }
            if (options.Log is { } log)
            {
                Hand(log, payload => AddendNative.addend_context_options_set_log(
                    building, Callbacks.Log, payload, Callbacks.Release));
            }
            if (options.Progress is { } progress)
            {
                Hand(progress, payload => AddendNative.addend_context_options_set_progress(
                    building, Callbacks.Progress, payload, Callbacks.Release));
            }
            if (options.Rules.Count > 0)
            {
                SetRules(building, options.Rules);
            }
            AddendNative.addend_context_options_set_detail(building, options.Detail ? 1 : 0);
            AddendNative.addend_context_create(building, out ContextHandle context);
            return context;
        }
    }

    private static void SetRules(ContextOptionsHandle building, IReadOnlyDictionary<string, Principle> rules)
    {
        AddendNative.addend_rules_create(out RulesHandle added);
        using (added)
        {
            foreach ((string op, Principle principle) in rules)
            {
                AddendNative.addend_rules_add(added, Text.Checked(op, nameof(op)), Words.Snake(principle.ToString()));
            }
            AddendNative.addend_context_options_set_rules(building, added);
        }
    }

    // The library keeps the payload and releases it with the last context; if it does not take it, it stays ours.
    private static void Hand(object callback, Action<IntPtr> take)
    {
        GCHandle payload = GCHandle.Alloc(callback);
        try
        {
            take(GCHandle.ToIntPtr(payload));
        }
        catch
        {
            payload.Free();
            throw;
        }
    }
}
