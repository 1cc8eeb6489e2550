using System.Globalization;

namespace Addend;

/// <summary>A policy in one word.</summary>
public enum Preset
{
    /// <summary>Faithful where the caller gives a baseline, else fast; the report says which.</summary>
    Auto,

    /// <summary>The path rule everywhere.</summary>
    Faithful,

    /// <summary>Attention weights, normalizers and denominators are frozen, and selections follow their winner.</summary>
    Fast,
}

/// <summary>Whose masks and indices the reference takes.</summary>
public enum Conditions
{
    /// <summary>Those of the value.</summary>
    Value,

    /// <summary>Those of the baseline: the reference is the model on the baseline.</summary>
    Baseline,
}

/// <summary>What operators take as reference.</summary>
public enum Anchor
{
    /// <summary>What the model computes on the baseline.</summary>
    Baseline,

    /// <summary>The whole residual.</summary>
    Residual,
}

/// <summary>Kinds of coefficients: what may be frozen, or move before content.</summary>
[Flags]
public enum Freeze
{
    /// <summary>Nothing.</summary>
    None = 0,

    /// <summary>Weights of attention.</summary>
    Attention = 1,

    /// <summary>What normalizations divide by.</summary>
    Normalizer = 2,

    /// <summary>What is divided by.</summary>
    Denominator = 4,

    /// <summary>Results of sigmoid, and of what multiplies by one (silu, gelu): gates.</summary>
    Gate = 8,
}

/// <summary>What happens at an operator that has no rule.</summary>
public enum MissingRule
{
    /// <summary>An error that names it.</summary>
    Error,

    /// <summary>The path rule through autograd.</summary>
    Path,

    /// <summary>Everything goes into the leftover.</summary>
    Absorb,
}

/// <summary>What a tracing failure does.</summary>
public enum OnFailure
{
    /// <summary>It is thrown.</summary>
    Error,

    /// <summary>It is told to the log and in the report.</summary>
    Warn,

    /// <summary>Value - recovery goes into the leftover, and is counted.</summary>
    Absorb,

    /// <summary>It is listed in the report, without a note or a message to the log.</summary>
    Ignore,
}

/// <summary>When recovery is compared with value.</summary>
public enum Check
{
    /// <summary>After every operator.</summary>
    EveryOp,

    /// <summary>At the outputs.</summary>
    Outputs,

    /// <summary>Never.</summary>
    Off,
}

/// <summary>
/// The choices that rules consult. What is null is as the preset has it. docs/policies.md tells what each means.
/// <code>
/// var policy = new Policy { Preset = Preset.Faithful, Segments = 4, ["bias@aten::linear"] = "abs" };
/// </code>
/// </summary>
public sealed record Policy
{
    private Dictionary<string, string> Overrides { get; init; } = [];

    /// <summary>The preset.</summary>
    public Preset? Preset { get; init; }

    /// <summary>How many pieces the line from baseline to input is cut into.</summary>
    public long? Segments { get; init; }

    /// <summary>How pointwise functions are linearized: <c>path</c>, <c>abs_affine</c>, <c>hybrid_affine(0.15)</c>,
    /// <c>scaling</c>, <c>gradient</c>, <c>none</c>.</summary>
    public string? Nonlinearity { get; init; }

    /// <summary>Who receives a constant: <c>residual</c>, <c>abs</c>, <c>hybrid</c>, <c>hybrid_threshold</c>, <c>sign</c>,
    /// <c>sign_threshold</c>, <c>norm</c>.</summary>
    public string? Bias { get; init; }

    /// <summary>What is frozen.</summary>
    public Freeze? Freeze { get; init; }

    /// <summary>Which coefficients move while the content that they multiply is the reference's, before the content moves.
    /// All other products share by half.</summary>
    public Freeze? ContentFirst { get; init; }

    /// <summary>Whose masks and indices the reference takes.</summary>
    public Conditions? Conditions { get; init; }

    /// <summary>What operators take as reference.</summary>
    public Anchor? Anchor { get; init; }

    /// <summary>What happens at an operator that has no rule.</summary>
    public MissingRule? MissingRule { get; init; }

    /// <summary>What a tracing failure does.</summary>
    public OnFailure? OnFailure { get; init; }

    /// <summary>When recovery is compared with value.</summary>
    public Check? Check { get; init; }

    /// <summary>How much recovery and value may differ; null: by dtype.</summary>
    public double? Tolerance { get; init; }

    /// <summary>A choice for one operator, or for a module path and all that is inside it.</summary>
    /// <param name="key">A choice and who it is for: <c>bias@aten::linear</c>, <c>preset@encoder.layers.0</c>.</param>
    public string this[string key]
    {
        get => Overrides[key];
        init => Overrides[key] = value;
    }

    /// <summary>A changed copy, for choices that come as text.</summary>
    /// <param name="key">A choice in the words of docs/policies.md, for all of the model or for a part of it:
    /// <c>segments</c>, <c>bias@aten::linear</c>.</param>
    /// <param name="value">What to choose: <c>4</c>, <c>abs</c>.</param>
    /// <returns>The copy, in which this choice is the last one.</returns>
    public Policy With(string key, string value) =>
        this with { Overrides = new(Overrides.Where(choice => choice.Key != key)) { [key] = value } };

    /// <summary>All choices that are made, in the words of the C interface.</summary>
    internal IEnumerable<(string Key, string Value)> Choices()
    {
        (string Key, string? Value)[] own =
        [
            ("preset", Word(Preset)),
            ("segments", Segments?.ToString(CultureInfo.InvariantCulture)),
            ("nonlinearity", Nonlinearity),
            ("bias", Bias),
            ("freeze", Freeze is { } freeze ? Words(freeze) : null),
            ("content_first", ContentFirst is { } first ? Words(first) : null),
            ("conditions", Word(Conditions)),
            ("anchor", Word(Anchor)),
            ("missing_rule", Word(MissingRule)),
            ("on_failure", Word(OnFailure)),
            ("check", Check == Addend.Check.EveryOp ? "every_op" : Word(Check)),
            ("tolerance", Tolerance?.ToString("R", CultureInfo.InvariantCulture)),
        ];
        foreach ((string key, string? value) in own)
        {
            if (value is not null)
            {
                yield return (key, value);
            }
        }
        foreach ((string key, string value) in Overrides)
        {
            yield return (key, value);
        }
    }

    private static string? Word<T>(T? choice)
        where T : struct, Enum
#pragma warning disable CA1308 // The words of the C interface are in lower case.
        => choice?.ToString().ToLowerInvariant();

    private static string Words(Freeze freeze) =>
        freeze.ToString().ToLowerInvariant().Replace(", ", "+", StringComparison.Ordinal);
#pragma warning restore CA1308
}
