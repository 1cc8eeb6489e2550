using System.Text.Json;

namespace Addend.Tests;

/// <summary>A case of tests/notes: a note, and the question of a model that has it.</summary>
internal sealed class Noted
{
    private readonly JsonElement _record; // tests/notes/models.py says what its keys mean
    private readonly JsonElement _options;
    private readonly string[] _pieces;

    private Noted(JsonElement record)
    {
        _record = record;
        _options = record.GetProperty("options");
        _pieces = Reading.Texts(record, "note");
        Warning = record.GetProperty("warning").GetBoolean();
    }

    internal string Name => Word("name");

    internal string Path => FileOf(Word("model"));

    internal bool Warning { get; }

    /// <summary>The doors that tell the note.</summary>
    internal IEnumerable<string> Doors
    {
        get
        {
            string own = Word("door");
            string[] others = own == "attribution" ? ["plan", "job"] : [];
            return [own, .. others.Where(other => Word("no_" + other).Length == 0)];
        }
    }

    /// <summary>The question of an attribution or of a plan, or of interactions.</summary>
    internal Request Attributed => Asked with
    {
        At = At,
        EachExample = _options.GetProperty("each_example").GetBoolean(),
        VerifyReference = VerifiesReference,
        Memory = _options.GetProperty("memory").GetInt64(),
        Targets = Targets("targets"),
    };

    internal Request Decomposed => Asked with { VerifyReference = VerifiesReference };

    /// <summary>The question of a job over the rows of the only input.</summary>
    internal Request OfRows => Asked with { At = At, Targets = Targets("row_targets") };

    /// <summary>The first target, which is a number of the first output.</summary>
    internal Target FirstTarget => Targets("targets")[0];

    /// <summary>The file of the only input.</summary>
    internal string Rows => FileOf(_record.GetProperty("inputs")[0].GetProperty("value").GetString()!);

    internal Context Context => new(_record.GetProperty("policy").EnumerateObject()
        .Aggregate(new Policy(), (policy, choice) => policy.With(choice.Name, choice.Value.GetString()!)));

    private string? At => _options.GetProperty("at").GetString();

    private bool VerifiesReference => _options.GetProperty("verify_reference").GetBoolean();

    private static string Folder => Samples.Runfile("tests/notes/files");

    private Request Asked
    {
        get
        {
            var read = new Dictionary<string, Tensor>(); // what names one file shares its memory
            JsonElement inputs = _record.GetProperty("inputs");
            return new Request([.. inputs.EnumerateArray().Select(given => InputOf(given, read))]);
        }
    }

    internal static IReadOnlyList<Noted> All() => Reading.Cases(Folder, record => new Noted(record));

    internal bool IsIn(IEnumerable<string> notes) => notes.Any(IsSaid);

    /// <summary>Whether a sentence is this note.</summary>
    internal bool IsSaid(string note)
    {
        if (!note.StartsWith(_pieces[0], StringComparison.Ordinal))
        {
            return false;
        }
        int end = 0;
        foreach (string piece in _pieces)
        {
            int begin = note.IndexOf(piece, end, StringComparison.Ordinal);
            if (begin < 0)
            {
                return false;
            }
            end = begin + piece.Length;
        }
        return true;
    }

    private static Input InputOf(JsonElement given, Dictionary<string, Tensor> read)
    {
        JsonElement baseline = given.GetProperty("baseline");
        JsonElement baselines = given.GetProperty("baselines");
        return new Input(Read(given.GetProperty("value"), read))
        {
            Split = Split.Along([.. given.GetProperty("dims").EnumerateArray().Select(dim => dim.GetInt64())]),
            Baseline = baselines.ValueKind == JsonValueKind.String ? Baseline.Several(Read(baselines, read))
                : baseline.ValueKind == JsonValueKind.String ? Read(baseline, read)
                : baseline.ValueKind == JsonValueKind.Number ? baseline.GetDouble()
                : null,
        };
    }

    private static Tensor Read(JsonElement name, Dictionary<string, Tensor> read)
    {
        string own = name.GetString()!;
        if (!read.TryGetValue(own, out Tensor? tensor))
        {
            using TensorFile file = TensorFile.Load(FileOf(own));
            read[own] = tensor = file.First();
        }
        return tensor;
    }

    private static string FileOf(string name) => System.IO.Path.Combine(Folder, name);

    private Target[] Targets(string key) => [.. Reading.Texts(_record, key).Select(text => (Target)text)];

    private string Word(string key) => _record.GetProperty(key).GetString()!;
}
