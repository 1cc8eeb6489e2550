using System.Text.Json;

namespace Addend.Native;

/// <summary>Reads the fields of a JSON object that the library wrote.</summary>
internal static class JsonFields
{
    internal static long Count(this JsonElement record, string name) => record.GetProperty(name).GetInt64();

    internal static int Index(this JsonElement record, string name) => record.GetProperty(name).GetInt32();

    internal static bool Flag(this JsonElement record, string name) => record.GetProperty(name).GetBoolean();

    internal static double Number(this JsonElement record, string name) => NumberOf(record.GetProperty(name));

    internal static double[] Numbers(this JsonElement record, string name) =>
        [.. record.GetProperty(name).EnumerateArray().Select(NumberOf)];

    internal static string Text(this JsonElement record, string name) => record.OptionalText(name) ?? "";

    internal static string? OptionalText(this JsonElement record, string name) => record.GetProperty(name).GetString();

    internal static IReadOnlyList<string> Texts(this JsonElement record, string name) =>
        [.. record.GetProperty(name).EnumerateArray().Select(text => text.GetString() ?? "")];

    internal static int? OptionalIndex(this JsonElement record, string name) =>
        record.GetProperty(name) is { ValueKind: JsonValueKind.Number } number ? number.GetInt32() : null;

    /// <summary>Makes an object of each record of a list; empty if there is no list.</summary>
    internal static IReadOnlyList<T> All<T>(this JsonElement record, string name, Func<JsonElement, T> make) =>
        record.TryGetProperty(name, out JsonElement list) ? [.. list.EnumerateArray().Select(make)] : [];

    // JSON has null for what is no number.
    private static double NumberOf(JsonElement value) =>
        value.ValueKind == JsonValueKind.Number ? value.GetDouble() : double.NaN;
}
