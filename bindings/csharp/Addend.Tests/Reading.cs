using System.Text.Json;
using System.Text.RegularExpressions;
using System.Xml.Linq;

namespace Addend.Tests;

/// <summary>Reads what Python programs write for tests, and what pages and jobs say.</summary>
internal static class Reading
{
    /// <summary>The cases of a folder, as its cases.json has them.</summary>
    internal static IReadOnlyList<T> Cases<T>(string folder, Func<JsonElement, T> make)
    {
        JsonElement document = Parse(File.ReadAllText(Path.Combine(folder, "cases.json")));
        return [.. document.GetProperty("cases").EnumerateArray().Select(make)];
    }

    internal static JsonElement Parse(string text) => JsonDocument.Parse(text).RootElement;

    internal static string[] Texts(JsonElement record, string key) =>
        [.. record.GetProperty(key).EnumerateArray().Select(text => text.GetString()!)];

    /// <summary>The JSON that a page shows.</summary>
    internal static string DataOf(string html)
    {
        Match data = Regex.Match(
            html, "<script type=\"application/json\" id=\"data\">(.*?)</script>", RegexOptions.Singleline);
        Assert.True(data.Success, "the page has no data");
        return data.Groups[1].Value;
    }

    /// <summary>The notes below a picture in SVG, which are broken into lines, each with the word that it begins
    /// with.</summary>
    internal static IReadOnlyList<string> NotesOfPicture(string svg)
    {
        var notes = new List<string>();
        foreach (XElement text in XDocument.Parse(svg).Descendants().Where(one => one.Name.LocalName == "text"))
        {
            if (text.Value.StartsWith("Warning: ", StringComparison.Ordinal)
                || text.Value.StartsWith("Note: ", StringComparison.Ordinal))
            {
                notes.Add(text.Value);
            }
            else if (notes.Count > 0)
            {
                notes[^1] += " " + text.Value;
            }
        }
        return notes;
    }

    /// <summary>The notes of a document of a job.</summary>
    internal static string[] NotesOfJob(JsonElement document) => NotesOfJob(document, _ => true);

    /// <summary>The warnings among the notes of a document of a job.</summary>
    internal static string[] WarningsOfJob(JsonElement document) =>
        NotesOfJob(document, note => note.GetProperty("warning").GetBoolean());

    private static string[] NotesOfJob(JsonElement document, Func<JsonElement, bool> which) =>
        [.. document.GetProperty("notes").EnumerateArray().Where(which)
            .Select(note => note.GetProperty("note").GetString()!)];
}
