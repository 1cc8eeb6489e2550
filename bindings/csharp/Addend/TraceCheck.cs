using System.Text.Json;

namespace Addend;

/// <summary>Something that a check of a recording has found.</summary>
/// <param name="Kind"><c>graph</c> (another run calls other operators), <c>value</c> (results differ), <c>guard</c> (a
/// number that left the tensors is another one), <c>constant</c>, <c>random</c>, <c>training</c>, <c>state</c> (the model
/// overwrites its own parameters) or <c>output</c>.</param>
/// <param name="Error">Whether the program gives something else than the model; else it is worth knowing.</param>
/// <param name="InputSet">Which further example showed it; null: the inputs of the recording.</param>
/// <param name="Position">Where the operator is; empty where none is to blame.</param>
/// <param name="Message">What was found, in one line.</param>
public sealed record Finding(string Kind, bool Error, int? InputSet, string Position, string Message);

/// <summary>Whether a recording is the model.</summary>
/// <param name="Ok">Whether no finding is an error.</param>
/// <param name="WorstError">The largest relative difference between a replay and the model.</param>
/// <param name="Findings">Errors, and what is worth knowing.</param>
public sealed record TraceCheck(bool Ok, double WorstError, IReadOnlyList<Finding> Findings)
{
    internal static TraceCheck Read(string json)
    {
        using JsonDocument document = JsonDocument.Parse(json);
        JsonElement record = document.RootElement;
        JsonElement worst = record.GetProperty("worst_error");
        return new TraceCheck(
            record.GetProperty("ok").GetBoolean(),
            worst.ValueKind == JsonValueKind.Number ? worst.GetDouble() : double.NaN,
            [.. record.GetProperty("findings").EnumerateArray().Select(FindingOf)]);
    }

    private static Finding FindingOf(JsonElement record)
    {
        JsonElement set = record.GetProperty("input_set");
        return new Finding(
            record.GetProperty("kind").GetString()!,
            record.GetProperty("error").GetBoolean(),
            set.ValueKind == JsonValueKind.Number ? set.GetInt32() : null,
            record.GetProperty("position").GetString() ?? "",
            record.GetProperty("message").GetString()!);
    }
}
