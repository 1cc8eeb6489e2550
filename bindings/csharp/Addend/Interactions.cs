using System.Globalization;
using System.Text.Json;
using Addend.Native;

namespace Addend;

/// <summary>Interactions of groups of components: plain data, with nothing to dispose.</summary>
public sealed class Interactions
{
    private readonly string _json;

    internal Interactions(string json)
    {
        _json = json;
        using JsonDocument document = JsonDocument.Parse(json);
        JsonElement record = document.RootElement;
        Names = record.All("groups", group => group.Text("name"));
        Contributions = record.All("groups", group => group.Number("contribution"));
        Matrix = record.All("groups", group => (IReadOnlyList<double>)group.Numbers("interactions"));
        Asymmetry = record.Number("asymmetry");
        Notes = record.Texts("notes");
        Warnings = record.Texts("warnings");
    }

    /// <summary>The names of the groups.</summary>
    public IReadOnlyList<string> Names { get; }

    /// <summary>The contributions of the groups to the number that is explained.</summary>
    public IReadOnlyList<double> Contributions { get; }

    /// <summary>A row for each group, which adds up to its contribution; an entry off the diagonal is the part that would be
    /// gone with the group of that column at its baseline.</summary>
    public IReadOnlyList<IReadOnlyList<double>> Matrix { get; }

    /// <summary>0 where the matrix is symmetric, 1 where of each pair one entry is 0 or has the other sign.</summary>
    public double Asymmetry { get; }

    /// <summary>The notes of the run, one line each, which a reader has to know.</summary>
    public IReadOnlyList<string> Notes { get; }

    /// <summary>The notes that say that numbers may not mean what a reader takes them for.</summary>
    public IReadOnlyList<string> Warnings { get; }

    /// <summary>The groups with their contributions in one line, then a line for each warning.</summary>
    public override string ToString()
    {
        IEnumerable<string> groups = Names.Zip(Contributions, (name, contribution) =>
            string.Create(CultureInfo.InvariantCulture, $"{name} {contribution:G4}"));
        return string.Join("\n", Warnings.Select(warning => "Warning: " + warning).Prepend(string.Join(", ", groups)));
    }

    /// <summary>All of it as a JSON object.</summary>
    /// <returns>The text.</returns>
    public string ToJson() => _json;

    /// <summary>All of it as a page for a browser, which needs nothing else.</summary>
    /// <returns>The text.</returns>
    public string ToHtml() => Text.Of(_json, AddendNative.addend_interactions_html);
}
