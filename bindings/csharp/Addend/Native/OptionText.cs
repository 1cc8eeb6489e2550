using System.Text.Json;
using System.Text.Json.Nodes;

namespace Addend.Native;

/// <summary>Options that the C interface takes as JSON. Their texts are checked as all others are: JSON would replace half of
/// a surrogate pair, and C would cut a path at a NUL.</summary>
internal static class OptionText
{
    internal static JsonArray List(IReadOnlyList<string> texts, string parameter)
    {
        ArgumentNullException.ThrowIfNull(texts, parameter);
        return new JsonArray([.. texts.Select(text => JsonValue.Create(Text.Checked(text, parameter)))]);
    }

    /// <summary>Parses a text of JSON; null for null.</summary>
    internal static JsonNode? Parsed(string? json, string parameter)
    {
        try
        {
            return json is null ? null : JsonNode.Parse(Text.Checked(json, parameter));
        }
        catch (JsonException error)
        {
            throw new ArgumentException($"{parameter} is no JSON: {error.Message}", parameter, error);
        }
    }

    internal static double Finite(double number, string parameter) => double.IsFinite(number)
        ? number
        : throw new ArgumentOutOfRangeException(parameter, number, $"{parameter} has to be a number");
}
