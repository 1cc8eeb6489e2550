using System.Text.Json;
using Addend.Native;

namespace Addend;

public sealed partial record Requirement
{
    internal static IReadOnlyList<Requirement> Read(string json)
    {
        using JsonDocument document = JsonDocument.Parse(json);
        return document.RootElement.All("unmet", Read);
    }

    /// <summary>Kind and message, in one line.</summary>
    public override string ToString() => $"{(Error ? "error" : "hint")}, {Kind}: {Message}";
}
