using System.Text.Json;
using System.Text.Json.Nodes;
using Answer = Addend.Tests.Construct.Answer;

namespace Addend.Tests;

/// <summary>
/// Every door of the library with every construct of tests/doors: numbers are right, or the door says that they are not.
/// A door is a way to ask what the columns of rows give to one number of each row; tests/doors/cells.py names them.
/// </summary>
[Trait("needs", "cases")]
public sealed class DoorsTests : FolderTest
{
    private static readonly Dictionary<string, Func<DoorsTests, Construct, List<Answer>>> Doors = new()
    {
        ["explain of a file"] = (_, construct) => Explain(construct),
        ["decompose of a file"] = (_, construct) => Decompose(construct),
        ["plan of a file"] = (_, construct) => Plan(construct),
        ["job"] = (test, construct) => test.RunJob(construct),
        ["reasons of a file"] = (_, construct) => Reasons(construct),
        ["interactions of a file"] = (_, construct) => Interactions(construct),
        ["baselines of a file"] = (_, construct) => Baselines(construct),
        ["page of a file"] = (_, construct) => Page(construct),
        ["picture of a file"] = (_, construct) => Picture(construct),
    };

    private static readonly (string Name, int Sign)[] Sides = [("adverse", -1), ("favourable", 1)];
    private static readonly Lazy<Dictionary<string, Construct>> Constructs =
        new(() => Construct.All().ToDictionary(construct => construct.Name));

    public static TheoryData<string, string> Cells()
    {
        var cells = new TheoryData<string, string>();
        foreach (string door in Doors.Keys)
        {
            foreach (string construct in Constructs.Value.Keys)
            {
                cells.Add(door, construct);
            }
        }
        return cells;
    }

    // Other tests of this assembly have no cases, which the enumeration reads.
    [Theory]
    [MemberData(nameof(Cells), DisableDiscoveryEnumeration = true)]
    public void Every_cell_is_right_or_says_so(string door, string name)
    {
        Construct construct = Constructs.Value[name];
        if (construct.Known(door) is not { } known)
        {
            Judge(door, construct);
            return;
        }
        try
        {
            Judge(door, construct);
        }
        catch (Exception expected) when (expected is Xunit.Sdk.XunitException || IsOfLibrary(expected))
        {
            return;
        }
        Assert.Fail("works now; take it out of KNOWN in tests/doors/cells.py: " + known);
    }

    private static bool IsOfLibrary(Exception error) => error.Data.Contains(AddendException.CodeKey);

    private void Judge(string door, Construct construct)
    {
        List<Answer> answers;
        string? mayStop =
            construct.MayStop(door) ?? (construct.Refused is [_, ..] words ? string.Join('|', words) : null);
        try
        {
            answers = Doors[door](this, construct);
        }
        catch (Exception error) when (mayStop is not null && IsOfLibrary(error))
        {
            Assert.Matches(mayStop, error.Message);
            return;
        }
        Assert.True(construct.Refused.Length == 0, "the door does not stop");
        Assert.NotEmpty(answers);
        answers.ForEach(construct.Judge);
    }

    private static List<Answer> Explain(Construct construct)
    {
        Model model = Model.Load(construct.Path);
        Attribution found = model.Attribute(construct.OfEachRow(construct.Input(construct.Rows)));
        Answer each = construct.ForEachRow();
        Add(found, each);
        Assert.Equal(
            each.Contributions.SelectMany(row => row).Select(one => (float)one),
            found.Input().To(DType.Float64).ToArray<double>().Select(one => (float)one));
        Answer alone = construct.RowByRow();
        for (int row = 0; row < construct.Rows.Length; row++)
        {
            Attribution one = model.Attribute(construct.OfRow(row));
            Add(one.Explain(), one.ToResults(), row, alone);
            RequireToldEverywhere(one);
        }
        return [each, alone];
    }

    private static List<Answer> Decompose(Construct construct)
    {
        Model model = Model.Load(construct.Path);
        Answer answer = construct.RowByRow();
        for (int row = 0; row < construct.Rows.Length; row++)
        {
            Results results = model.Decompose(construct.Decomposed(row));
            Add(results.Explain(construct.TargetOfRow(row), construct.Explained), results, row, answer);
        }
        return [answer];
    }

    private static List<Answer> Plan(Construct construct)
    {
        Input turned = construct.Input([.. construct.Rows.Reverse()]);
        Plan plan = Model.Load(construct.Path).Plan(construct.OfEachRow(turned));
        Answer answer = construct.ForEachRow();
        Add(plan.Attribute(construct.OfEachRow(construct.Input(construct.Rows))), answer);
        return [answer];
    }

    private List<Answer> RunJob(Construct construct)
    {
        string rows = Path.Combine(Folder, "rows.safetensors");
        using var file = new TensorFile();
        file.Add("rows", construct.Tensor(construct.Rows));
        file.Save(rows);
        Request request = construct.OfEachRow(construct.Input([construct.Rows[0]])) with { EachExample = false };
        var answers = new List<Answer>();
        foreach ((string side, int sign) in Sides)
        {
            string plan = Path.Combine(Folder, side + ".json");
            Job.Plan(plan, construct.Path, request, new JobOptions(rows) { Concepts = ConceptsOf(construct, side) });
            using (var job = new Job(plan))
            {
                for (long shard = 0; shard < job.Shards; shard++)
                {
                    job.Run(shard);
                }
            }
            Answer answer = construct.ForEachRow();
            JsonElement merged = Reading.Parse(Job.Merge(plan));
            answer.Said.AddRange(Reading.WarningsOfJob(Reading.Parse(Job.Status(plan))));
            answer.Said.AddRange(Reading.WarningsOfJob(merged));
            foreach (JsonElement refused in merged.GetProperty("refused").EnumerateArray())
            {
                answer.Said.Add(refused.GetProperty("reason").GetString()!);
            }
            using TensorFile results = TensorFile.Load(merged.GetProperty("path").GetString()!);
            double[] numbers = results["contributions"].ToArray<double>();
            long[] reasons = results["reasons"].ToArray<long>();
            for (int row = 0; row < construct.Rows.Length; row++)
            {
                Range own = (row * construct.Columns)..((row + 1) * construct.Columns);
                numbers[own].CopyTo(answer.Contributions[row], 0);
                Assert.Equal(Ranked(numbers[own], sign), reasons[own]);
            }
            answers.Add(answer);
        }
        return answers;
    }

    // Columns that moved a number to a side, the largest first; the rest is -1.
    private static long[] Ranked(double[] contributions, int sign)
    {
        long[] moved = [.. Enumerable.Range(0, contributions.Length).Where(k => sign * contributions[k] > 0)
            .OrderByDescending(k => sign * contributions[k]).Select(k => (long)k)];
        return [.. moved, .. Enumerable.Repeat(-1L, contributions.Length - moved.Length)];
    }

    private static List<Answer> Reasons(Construct construct)
    {
        Attribution found = Model.Load(construct.Path).Attribute(construct.OfEachRow(construct.Input(construct.Rows)));
        Answer answer = construct.ForEachRow();
        foreach ((string side, int _) in Sides)
        {
            Reasons reasons = found.Reasons(Concepts.Read(ConceptsOf(construct, side)));
            answer.Said.AddRange(reasons.Warnings);
            for (int row = 0; row < construct.Rows.Length; row++)
            {
                Decision decision = reasons.Decisions[row];
                double before = double.PositiveInfinity;
                foreach (Reason reason in decision.Reasons)
                {
                    Assert.True(Math.Abs(reason.Contribution) <= before, decision.ToString());
                    before = Math.Abs(reason.Contribution);
                    answer.Contributions[row][Array.IndexOf(construct.Names, reason.Concept)] = reason.Contribution;
                }
                if (decision.Outcome == "not_finite")
                {
                    Array.Fill(answer.Contributions[row], double.NaN);
                }
            }
        }
        return [answer];
    }

    private static List<Answer> Interactions(Construct construct)
    {
        Model model = Model.Load(construct.Path);
        Answer answer = construct.RowByRow();
        for (int row = 0; row < construct.Rows.Length; row++)
        {
            Interactions found = model.Interactions(construct.OfRow(row));
            answer.Contributions[row] = [.. found.Contributions];
            answer.Said.AddRange(found.Warnings);
        }
        return [answer];
    }

    private static List<Answer> Baselines(Construct construct)
    {
        Request request = construct.OfEachRow(construct.InputWithSeveralBaselines());
        Attribution found = Model.Load(construct.Path).Attribute(request);
        Answer answer = construct.OfSeveralBaselines();
        for (int row = 0; row < construct.Rows.Length; row++)
        {
            answer.Contributions[row] = ContributionsOf(found.Explain(row));
        }
        answer.Said.AddRange(found.Warnings);
        RequireToldEverywhere(found);
        return [answer];
    }

    private static List<Answer> Page(Construct construct)
    {
        Attribution found = Model.Load(construct.Path).Attribute(construct.OfEachRow(construct.Input(construct.Rows)));
        return [ReadDocument(construct, found.ToJson()), ReadDocument(construct, Reading.DataOf(found.ToHtml()))];
    }

    private static Answer ReadDocument(Construct construct, string text)
    {
        JsonElement document = Reading.Parse(text);
        JsonElement report = document.GetProperty("report");
        Answer answer = construct.ForEachRow();
        answer.Said.AddRange(Reading.Texts(report, "warnings"));
        for (int row = 0; row < construct.Rows.Length; row++)
        {
            JsonElement target = document.GetProperty("targets")[row];
            answer.Contributions[row] = Construct.Numbers(target.GetProperty("contributions"));
            if (report.GetProperty("reference_is_model_on_baseline").GetString() == "yes")
            {
                answer.Claimed[row] = target.GetProperty("reference").GetDouble();
            }
        }
        return answer;
    }

    private static List<Answer> Picture(Construct construct)
    {
        Attribution found = Model.Load(construct.Path).Attribute(construct.OfEachRow(construct.Input(construct.Rows)));
        Answer answer = construct.ForEachRow();
        for (int row = 0; row < construct.Rows.Length; row++)
        {
            Explanation one = found.Explain(row);
            answer.Contributions[row] = ContributionsOf(one);
            IReadOnlyList<string> notes = Reading.NotesOfPicture(one.ToSvg());
            answer.Said.AddRange(notes.Where(note => note.StartsWith("Warning: ", StringComparison.Ordinal)));
            if (!notes.Any(note => note.Contains("what the model gives on the baseline", StringComparison.Ordinal)))
            {
                answer.Claimed[row] = one.Reference;
            }
        }
        return [answer];
    }

    private static void Add(Attribution found, Answer answer)
    {
        Results results = found.ToResults();
        for (int row = 0; row < found.Count; row++)
        {
            Add(found.Explain(row), results, row, answer);
        }
        RequireToldEverywhere(found);
    }

    private static void Add(Explanation found, Results results, int row, Answer answer)
    {
        answer.Contributions[row] = ContributionsOf(found);
        answer.Said.AddRange(results.Warnings);
        if (results.Report.ReferenceIsModelOnBaseline == "yes")
        {
            answer.Claimed[row] = found.Reference;
        }
    }

    private static double[] ContributionsOf(Explanation found) => [.. found.Contributions.Select(one => one.Value)];

    private static void RequireToldEverywhere(Attribution found)
    {
        foreach (string warning in found.Warnings)
        {
            Assert.Contains(warning, found.Notes);
            Assert.Contains(warning, found.ToString(), StringComparison.Ordinal);
        }
    }

    // One concept for each column.
    private static string ConceptsOf(Construct construct, string side) => new JsonObject
    {
        ["format"] = "addend.concepts",
        ["version"] = 1,
        ["side"] = side,
        ["at_most"] = construct.Columns,
        ["concepts"] = new JsonArray([.. construct.Names.Select(
            name => new JsonObject { ["name"] = name, ["components"] = new JsonArray(name) })]),
    }.ToJsonString();
}
