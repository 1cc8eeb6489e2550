using System.Text.Json;
using Addend.Native;

namespace Addend;

/// <summary>The reasons of some decisions: plain data, with nothing to dispose.</summary>
public sealed class Reasons
{
    private readonly string _json;

    internal Reasons(string json)
    {
        _json = json;
        using JsonDocument document = JsonDocument.Parse(json);
        Decisions = document.RootElement.All("decisions", Decision.Read);
    }

    /// <summary>One for each target, or for each example.</summary>
    public IReadOnlyList<Decision> Decisions { get; }

    /// <summary>All of it as a JSON object.</summary>
    /// <returns>The text.</returns>
    public string ToJson() => _json;

    /// <summary>All of it as a page for a browser, which needs nothing else.</summary>
    /// <returns>The text.</returns>
    public string ToHtml()
    {
        AddendNative.addend_reasons_html(_json, out StringHandle html);
        return Text.Taken(html);
    }
}
