using System.Text.Json;

namespace Addend;

public sealed partial record TraceCheck
{
    internal static TraceCheck Read(string json)
    {
        using JsonDocument document = JsonDocument.Parse(json);
        return Read(document.RootElement);
    }
}
