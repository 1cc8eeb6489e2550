using System.Text.Json.Nodes;
using Addend.Native;

namespace Addend;

/// <summary>How <see cref="RecordedProgram.Replay(Request, ReplayOptions?, CancellationToken)"/> runs.</summary>
public sealed record ReplayOptions
{
    /// <summary>The names of inner tensors that are wanted too, as <see cref="RecordedProgram.Names"/> has them.</summary>
    public IReadOnlyList<string> Values { get; init; } = [];

    /// <summary>Whether all inner tensors are wanted.</summary>
    public bool EveryValue { get; init; }

    /// <summary>Whether a number that left the tensors and is another one than in the recording stops the run. Without, the
    /// run follows the branch of the recording, right or wrong.</summary>
    public bool Guards { get; init; } = true;

    /// <summary>The tolerated relative difference of floating-point numbers that left the tensors.</summary>
    public double GuardTolerance { get; init; }

    /// <summary>Whether every write goes into a copy of the memory, so that inner tensors are as they were made.</summary>
    public bool OutOfPlace { get; init; }

    internal string ToJson() => new JsonObject
    {
        ["values"] = OptionText.List(Values, nameof(Values)),
        ["every_value"] = EveryValue,
        ["guards"] = Guards,
        ["guard_tolerance"] = OptionText.Finite(GuardTolerance, nameof(GuardTolerance)),
        ["out_of_place"] = OutOfPlace,
    }.ToJsonString();
}

/// <summary>How <see cref="RecordedProgram.Code"/> writes.</summary>
public sealed record CodeOptions
{
    /// <summary>Whether a line stands once for all its expressions.</summary>
    public bool Succinct { get; init; } = true;

    /// <summary>Whether there are colours, by the escapes of terminals.</summary>
    public bool Color { get; init; }

    /// <summary>Whether tensors have their names.</summary>
    public bool Names { get; init; }

    /// <summary>Whether tensors that share memory have the number of their storage, and <c>!</c> where it is
    /// written.</summary>
    public bool Marks { get; init; }

    /// <summary>The files whose lines are shown, paths in which a star stands for anything; none: all.</summary>
    public IReadOnlyList<string> Include { get; init; } = [];

    /// <summary>The files whose lines are not shown; null: the inside of PyTorch.</summary>
    public IReadOnlyList<string>? Exclude { get; init; }

    /// <summary>The numbers that are shown behind each operator.</summary>
    public IReadOnlyList<CallNumbers> Numbers { get; init; } = [];

    internal string ToJson()
    {
        var json = new JsonObject
        {
            ["succinct"] = Succinct,
            ["color"] = Color,
            ["names"] = Names,
            ["marks"] = Marks,
            ["include"] = OptionText.List(Include, nameof(Include)),
            ["numbers"] = CallNumbers.ToJson(Numbers),
        };
        if (Exclude is not null)
        {
            json["exclude"] = OptionText.List(Exclude, nameof(Exclude));
        }
        return json.ToJsonString();
    }
}

/// <summary>The unit of numbers.</summary>
public enum NumberUnit
{
    /// <summary>No particular unit.</summary>
    None,

    /// <summary>Time.</summary>
    Seconds,

    /// <summary>Memory.</summary>
    Bytes,
}

/// <summary>Numbers that are shown behind each operator of a program: a time, a contribution.</summary>
/// <param name="Name">What to call the numbers.</param>
/// <param name="Values">One for each operator; NaN where there is none.</param>
/// <param name="Unit">Their unit.</param>
public sealed record CallNumbers(string Name, IReadOnlyList<double> Values, NumberUnit Unit = NumberUnit.None)
{
    internal static JsonArray ToJson(IEnumerable<CallNumbers> numbers)
    {
        ArgumentNullException.ThrowIfNull(numbers);
        var listed = new JsonArray();
        foreach (CallNumbers one in numbers)
        {
            ArgumentNullException.ThrowIfNull(one);
            ArgumentNullException.ThrowIfNull(one.Values);
            listed.Add((JsonNode)new JsonObject
            {
                ["name"] = Text.Checked(one.Name, nameof(Name)),
                ["unit"] = one.Unit switch
                {
                    NumberUnit.Seconds => "seconds",
                    NumberUnit.Bytes => "bytes",
                    _ => "",
                },
                ["values"] = new JsonArray([.. one.Values.Select(v => double.IsFinite(v) ? JsonValue.Create(v) : null)]),
            });
        }
        return listed;
    }
}
