using System.Text.Json;

namespace Addend.Tests;

/// <summary>Every note of tests/notes is told at every door that has it, as a warning where it is one: by lists, prints,
/// pages and pictures.</summary>
[Trait("needs", "cases")]
public sealed class NotesTests : FolderTest
{
    private const string Printed = "Warning: ";

    private static readonly Dictionary<string, Action<NotesTests, Noted>> Doors = new()
    {
        ["attribution"] = (_, noted) => Attribution(noted),
        ["decomposition"] = (_, noted) => Decomposition(noted),
        ["interactions"] = (_, noted) => Interactions(noted),
        ["plan"] = (_, noted) => Plan(noted),
        ["job"] = (test, noted) => test.RunJob(noted),
    };

    private static readonly Lazy<Dictionary<string, Noted>> Cases =
        new(() => Noted.All().ToDictionary(noted => noted.Name));

    public static TheoryData<string, string> Cells()
    {
        var cells = new TheoryData<string, string>();
        foreach (Noted noted in Cases.Value.Values)
        {
            foreach (string door in noted.Doors)
            {
                cells.Add(door, noted.Name);
            }
        }
        return cells;
    }

    // Other tests of this assembly have no cases, which the enumeration reads.
    [Theory]
    [MemberData(nameof(Cells), DisableDiscoveryEnumeration = true)]
    public void Every_note_is_told(string door, string name) => Doors[door](this, Cases.Value[name]);

    private static void Attribution(Noted noted) =>
        RequireToldEverywhere(noted, Model.Load(noted.Path).Attribute(noted.Attributed, noted.Context));

    private static void Plan(Noted noted)
    {
        Plan plan = Model.Load(noted.Path).Plan(noted.Attributed, noted.Context);
        RequireToldEverywhere(noted, plan.Attribute(noted.Attributed));
    }

    private static void Decomposition(Noted noted)
    {
        Results found = Model.Load(noted.Path).Decompose(noted.Decomposed, noted.Context);
        RequireTold(noted, found.Notes, found.Warnings);
        RequireTold(noted, found.Explain(noted.FirstTarget));
        RequireTold(noted, found.Composition().Explain(noted.FirstTarget));
    }

    private static void Interactions(Noted noted)
    {
        Interactions found = Model.Load(noted.Path).Interactions(noted.Attributed, context: noted.Context);
        RequireTold(noted, found.Notes, found.Warnings);
        RequireTold(noted, Reading.Parse(found.ToJson()));
        RequireTold(noted, Reading.Parse(Reading.DataOf(found.ToHtml())));
    }

    private void RunJob(Noted noted)
    {
        string plan = Path.Combine(Folder, "job.json");
        Job.Plan(plan, noted.Path, noted.OfRows, new JobOptions(noted.Rows), noted.Context);
        using (var job = new Job(plan))
        {
            for (long shard = 0; shard < job.Shards; shard++)
            {
                job.Run(shard);
            }
        }
        foreach (string text in new[] { Job.Status(plan), Job.Merge(plan) })
        {
            JsonElement document = Reading.Parse(text);
            RequireTold(noted, Reading.NotesOfJob(document), Reading.WarningsOfJob(document));
        }
    }

    private static void RequireToldEverywhere(Noted noted, Attribution found)
    {
        RequireTold(noted, found.Notes, found.Warnings);
        RequirePrinted(noted, found.ToString());
        RequireReported(noted, found.ToJson());
        RequireReported(noted, Reading.DataOf(found.ToHtml()));
        RequireTold(noted, found.Reasons(AllComponents()));
        for (int target = 0; target < found.Count; target++)
        {
            RequireTold(noted, found.Explain(target));
        }
    }

    private static void RequireTold(Noted noted, Explanation found)
    {
        RequireDrawn(noted, found);
        RequireReported(noted, found.ToJson());
        RequireReported(noted, Reading.DataOf(found.ToHtml()));
        RequireTold(noted, found.Reasons(AllComponents()));
    }

    // The picture has the note too. Numbers that are not finite have no picture.
    private static void RequireDrawn(Noted noted, Explanation found)
    {
        double[] numbers = [found.Value, found.Reference, found.Leftover, .. found.Contributions.Select(one => one.Value)];
        if (!numbers.All(double.IsFinite))
        {
            Assert.Throws<InvalidOperationException>(() => found.ToSvg());
            return;
        }
        string[] drawn = [.. Reading.NotesOfPicture(found.ToSvg()).Select(WithoutSpaces)];
        JsonElement report = Reading.Parse(found.ToJson()).GetProperty("report");
        string[] told = [.. Reading.Texts(report, "notes").Where(noted.IsSaid)];
        Assert.NotEmpty(told);
        foreach (string note in told)
        {
            Assert.Contains(WithoutSpaces((noted.Warning ? Printed : "Note: ") + note), drawn);
        }
    }

    // Lines are broken at spaces, and within words that are too long.
    private static string WithoutSpaces(string text) => text.Replace(" ", string.Empty, StringComparison.Ordinal);

    private static void RequireTold(Noted noted, Reasons found)
    {
        RequireTold(noted, found.Notes, found.Warnings);
        RequirePrinted(noted, found.ToString());
        RequireTold(noted, Reading.Parse(Reading.DataOf(found.ToHtml())));
    }

    private static void RequireReported(Noted noted, string document) =>
        RequireTold(noted, Reading.Parse(document).GetProperty("report"));

    private static void RequireTold(Noted noted, JsonElement record) =>
        RequireTold(noted, Reading.Texts(record, "notes"), Reading.Texts(record, "warnings"));

    private static void RequireTold(Noted noted, IReadOnlyList<string> notes, IReadOnlyList<string> warnings)
    {
        Assert.True(noted.IsIn(notes), "no such note: " + string.Join("; ", notes));
        Assert.True(noted.IsIn(warnings) == noted.Warning, "warnings: " + string.Join("; ", warnings));
    }

    // Warnings are printed, and remarks are not.
    private static void RequirePrinted(Noted noted, string? text)
    {
        IEnumerable<string> said = text!.Split('\n').Where(line => line.StartsWith(Printed, StringComparison.Ordinal))
            .Select(line => line[Printed.Length..]);
        Assert.True(noted.IsIn(said) == noted.Warning, text);
    }

    private static Concepts AllComponents() => Concepts.Read("""
        {"format": "addend.concepts", "version": 1, "side": "adverse",
         "concepts": [{"name": "all", "components": ["*"]}]}
        """);
}
