namespace Addend;

/// <summary>
/// The choices that rules consult. What is null keeps its default. docs/policies.md tells what each means.
/// <code>
/// var policy = new Policy { Preset = Preset.Faithful, Segments = 4, ["bias@aten::linear"] = "abs" };
/// </code>
/// </summary>
public sealed partial record Policy
{
    private Dictionary<string, string> Overrides { get; init; } = [];

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
        foreach ((string key, string? value) in Own())
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
        where T : struct, Enum => choice is { } chosen ? Native.Words.Snake(chosen.ToString()) : null;

    private static string? Words<T>(T? choices)
        where T : struct, Enum => Word(choices)?.Replace(", ", "+", StringComparison.Ordinal);
}
