using System.Globalization;
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
        Notes = document.RootElement.Texts("notes");
        Warnings = document.RootElement.Texts("warnings");
    }

    /// <summary>One for each target, or for each example.</summary>
    public IReadOnlyList<Decision> Decisions { get; }

    /// <summary>The notes of the run that the numbers are of, one line each, which a reader has to know. Those of a
    /// single decision are in the decision.</summary>
    public IReadOnlyList<string> Notes { get; }

    /// <summary>The notes that say that numbers may not mean what a reader takes them for.</summary>
    public IReadOnlyList<string> Warnings { get; }

    /// <summary>All of it as a JSON object.</summary>
    /// <returns>The text.</returns>
    public string ToJson() => _json;

    /// <summary>All of it as a page for a browser, which needs nothing else.</summary>
    /// <returns>The text.</returns>
    public string ToHtml() => Text.Of(_json, AddendNative.addend_reasons_html);

    /// <summary>The decisions with their reasons, and the warnings: some lines for each decision, one for each
    /// warning.</summary>
    public override string ToString()
    {
        List<string> lines = [.. Decisions.Select(decision => decision.ToString())];
        lines.AddRange(Warnings.Select(warning => "Warning: " + warning));
        return string.Join("\n", lines);
    }
}

public sealed partial record Decision
{
    /// <summary>The number in one line, then a line for each reason.</summary>
    public override string ToString() => string.Join("\n", Reasons.Select(reason => reason.ToString()).Prepend(
        string.Create(CultureInfo.InvariantCulture, $"{Name} = {Value:G6}, {Outcome}")));
}

public sealed partial record Reason
{
    /// <summary>The reason in words with its contribution, in one line.</summary>
    public override string ToString() => string.Create(CultureInfo.InvariantCulture, $"{Contribution:G4}  {Text}");
}
