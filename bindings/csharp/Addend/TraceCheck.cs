using System.Text.Json;

namespace Addend;

public sealed partial record TraceCheck
{
    internal static TraceCheck Read(string json)
    {
        using JsonDocument document = JsonDocument.Parse(json);
        return Read(document.RootElement);
    }

    /// <summary>The verdict, then a line for each finding.</summary>
    public override string ToString() => string.Join("\n", Findings.Select(finding => finding.ToString()).Prepend(
        Ok ? "the recording is the model" : "the recording is not the model"));
}

public sealed partial record Finding
{
    /// <summary>Kind and message, in one line.</summary>
    public override string ToString() => $"{(Error ? "error" : "hint")}, {Kind}: {Message}";
}
