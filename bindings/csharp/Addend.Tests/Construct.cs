using System.Text.Json;

namespace Addend.Tests;

/// <summary>A construct of tests/doors: a model with rows and a baseline, and what PyTorch says.</summary>
internal sealed class Construct
{
    private readonly JsonElement _record; // its keys are those of Construct.record in tests/doors/constructs.py
    private readonly string _at;
    private readonly bool _together;
    private readonly string[] _says;
    private readonly double _tolerance;

    private Construct(JsonElement record)
    {
        _record = record;
        _at = Word("at");
        _together = record.GetProperty("together").GetBoolean();
        _says = Words("says");
        _tolerance = record.GetProperty("tolerance").GetDouble();
        Rows = Lists("rows");
        Target = record.GetProperty("target").GetInt64();
        Refused = Words("refused");
    }

    internal string Name => Word("name");

    internal string Path => System.IO.Path.Combine(Folder, Word("file"));

    internal double[][] Rows { get; }

    internal int Columns => Rows[0].Length;

    internal long Target { get; }

    /// <summary>Selector of the explained tensor; null: the first output.</summary>
    internal string? Explained => _at.Length > 0 ? _at : Word("output") is { Length: > 0 } output ? output : null;

    internal string[] Names => [.. Enumerable.Range(0, Columns).Select(column => $"part {column}")];

    internal string[] Refused { get; }

    private static string Folder => Samples.Runfile("tests/doors/cases");

    internal static IReadOnlyList<Construct> All() => Reading.Cases(Folder, record => new Construct(record));

    /// <summary>A regular expression of the error with which a door may stop; null if it may not.</summary>
    internal string? MayStop(string door) => OfDoor("may_stop", door);

    /// <summary>Why a door is not right yet; null if it is.</summary>
    internal string? Known(string door) => OfDoor("known", door);

    internal Tensor Tensor(double[][] rows)
    {
        using Tensor made = Addend.Tensor.From(rows.SelectMany(row => row).ToArray(), rows.Length, Columns);
        return made.To(Word("dtype") == "int64" ? DType.Int64 : DType.Float32);
    }

    internal Input Input(double[][] rows) =>
        new(Tensor(rows)) { Split = Split.Along(1), Names = Names, Baseline = Tensor(Lists("baseline")) };

    internal Input InputWithSeveralBaselines() =>
        Input(Rows) with { Baseline = Baseline.Several(Tensor(Lists("baselines"))) };

    /// <summary>The number of each row.</summary>
    internal Request OfEachRow(Input input) =>
        Where(input) with { EachExample = true, Targets = [Addend.Target.At(Target)] };

    /// <summary>The number of one row, alone or among all where it has another number among others.</summary>
    internal Request OfRow(int row) => Where(Input(Asked(row))) with { Targets = [TargetOfRow(row)] };

    /// <summary>Request for a decomposition of the same number; a tensor inside the model is asked for as a
    /// probe.</summary>
    internal Request Decomposed(int row) =>
        OfRow(row) with { At = null, Targets = [], Probes = _at.Length > 0 ? [_at] : [] };

    internal Target TargetOfRow(int row) => Addend.Target.At(_together ? row : 0, Target);

    /// <summary>Fails unless numbers are those of PyTorch, or the answer says that they are not.</summary>
    internal void Judge(Answer answer)
    {
        double[] onBaseline = Numbers(_record.GetProperty("on_baseline"));
        foreach ((int row, double reference) in answer.Claimed)
        {
            Assert.True(
                Math.Abs(reference - onBaseline[row]) <= _tolerance,
                $"the reference is said to be the model on the baseline: {reference} for {onBaseline[row]}");
        }
        string wrong = Wrong(answer);
        if (_says.Length == 0)
        {
            Assert.Equal("", wrong);
            Assert.Empty(answer.Said);
        }
        else if (wrong.Length > 0 && !answer.Said.Exists(Says))
        {
            Assert.Fail($"{wrong}, and nothing says it: {string.Join("; ", answer.Said)}");
        }
    }

    internal Answer ForEachRow() => new(this, several: false, ofBatch: false);

    internal Answer RowByRow() => new(this, several: false, ofBatch: _together);

    internal Answer OfSeveralBaselines() => new(this, several: true, ofBatch: false);

    // A number; NaN for null, which is what JSON has for it.
    internal static double[] Numbers(JsonElement list) =>
        [.. list.EnumerateArray().Select(one => one.ValueKind == JsonValueKind.Null ? double.NaN : one.GetDouble())];

    private double[][] Asked(int row) => _together ? Rows : [Rows[row]];

    private Request Where(Input input) => new(input)
    {
        At = _at.Length > 0 ? _at : null,
        Outputs = Word("output") is { Length: > 0 } output ? [output] : [],
    };

    private bool Says(string line) => _says.Any(word => line.Contains(word, StringComparison.Ordinal));

    // The fault of numbers; empty if there is none.
    private string Wrong(Answer answer)
    {
        string of = answer.Several ? "_of_several" : "";
        JsonElement contributions = _record.GetProperty("contributions" + of);
        bool none = contributions.ValueKind == JsonValueKind.Null;
        // All rows together have no other rows beside them.
        bool whole = _together && answer.OfBatch;
        if (none && !whole && !_record.GetProperty("complete").GetBoolean())
        {
            return "these numbers need a word";
        }
        bool sums = none || whole;
        double[] moves = Numbers(_record.GetProperty("move" + of));
        for (int row = 0; row < Rows.Length; row++)
        {
            double[] wanted = sums ? [moves[row]] : Numbers(contributions[row]);
            double[] given = sums ? [answer.Contributions[row].Sum()] : answer.Contributions[row];
            if (!wanted.Zip(given).All(pair => Math.Abs(pair.First - pair.Second) <= _tolerance))
            {
                string what = sums ? "the sum is" : "contributions are";
                return $"{what} {string.Join(", ", given)} for {string.Join(", ", wanted)}";
            }
        }
        return "";
    }

    private string Word(string key) => _record.GetProperty(key).GetString()!;

    private string[] Words(string key) => Reading.Texts(_record, key);

    private double[][] Lists(string key) => [.. _record.GetProperty(key).EnumerateArray().Select(Numbers)];

    private string? OfDoor(string key, string door) =>
        _record.GetProperty(key).TryGetProperty(door, out JsonElement text) ? text.GetString() : null;

    /// <summary>The answer of a door.</summary>
    internal sealed class Answer(Construct construct, bool several, bool ofBatch)
    {
        /// <summary>Contributions by row and column.</summary>
        internal double[][] Contributions { get; } = [.. construct.Rows.Select(row => new double[row.Length])];

        /// <summary>References that the answer claims to be the model's output on the baseline, by row.</summary>
        internal Dictionary<int, double> Claimed { get; } = [];

        /// <summary>Notes that a reader has to know before any number is read.</summary>
        internal List<string> Said { get; } = [];

        /// <summary>Whether these are means over all baselines.</summary>
        internal bool Several => several;

        /// <summary>Whether a contribution is that of a column of all rows.</summary>
        internal bool OfBatch => ofBatch;
    }
}
