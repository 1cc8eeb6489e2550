using System.Text.Json;

namespace Addend;

/// <summary>Something that a run lacks, as <see cref="Model.Requirements"/> tells it before the run.</summary>
/// <param name="Kind"><c>input</c> (number, shape, dtype or device of what is given), <c>mode</c> (something runs as in
/// training) or <c>operator</c> (it has no rule).</param>
/// <param name="Error">Whether the run would fail; else it is worth knowing.</param>
/// <param name="Position">Where the first operator concerned is; empty for inputs.</param>
/// <param name="Message">What is missing, in one line.</param>
public sealed record Requirement(string Kind, bool Error, string Position, string Message)
{
    internal static IReadOnlyList<Requirement> Read(string json)
    {
        using JsonDocument document = JsonDocument.Parse(json);
        return [.. document.RootElement.GetProperty("unmet").EnumerateArray().Select(unmet => new Requirement(
            unmet.GetProperty("kind").GetString()!,
            unmet.GetProperty("error").GetBoolean(),
            unmet.GetProperty("position").GetString() ?? "",
            unmet.GetProperty("message").GetString()!))];
    }
}
