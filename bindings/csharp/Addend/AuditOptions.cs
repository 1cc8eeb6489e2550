using System.Text.Json;
using System.Text.Json.Nodes;
using Addend.Native;

namespace Addend;

/// <summary>Additional members of a record of an <see cref="AuditLog"/>, beside its attribution.</summary>
public sealed record RecordOptions
{
    /// <summary>Facts that belong to the decision, such as the number of an application: any JSON.</summary>
    public string? Context { get; init; }

    /// <summary>Reasons that were made of the contributions: any JSON.</summary>
    public string? Reasons { get; init; }

    /// <summary>The digest of a live model's file, of which Addend knows none: 64 hexadecimal digits.</summary>
    public string? ModelSha256 { get; init; }

    /// <summary>A fixed salt, for tests: 64 hexadecimal digits; null: drawn at random.</summary>
    public string? Salt { get; init; }

    /// <summary>A fixed time, for tests: <c>2026-11-25T16:30:00.123456Z</c>; null: that of the clock.</summary>
    public string? Time { get; init; }

    internal string ToJson()
    {
        var json = new JsonObject();
        void Add(string key, JsonNode? value)
        {
            if (value is not null)
            {
                json[key] = value;
            }
        }
        Add("context", OptionText.Parsed(Context, nameof(Context)));
        Add("reasons", OptionText.Parsed(Reasons, nameof(Reasons)));
        Add("model_sha256", ModelSha256);
        Add("salt", Salt);
        Add("time", Time);
        return json.ToJsonString();
    }
}

/// <summary>Options of <see cref="AuditLog.Verify"/>: the files it may use, and the expectations it checks.</summary>
public sealed record VerifyOptions
{
    /// <summary>Models, whose records are computed again: TorchScript files, exported programs and folders of recorded
    /// programs.</summary>
    public IReadOnlyList<string> Models { get; init; } = [];

    /// <summary>Files of tensors, in which inputs are found that records do not hold.</summary>
    public IReadOnlyList<string> Inputs { get; init; } = [];

    /// <summary>How many records are computed again, drawn at random; null: all.</summary>
    public long? Sample { get; init; }

    /// <summary>The seed of the draw; null: another one each time.</summary>
    public long? Seed { get; init; }

    /// <summary>A hash that some record has to have: 64 hexadecimal digits.</summary>
    public string? Expect { get; init; }

    internal string ToJson()
    {
        var json = new JsonObject
        {
            ["models"] = OptionText.List(Models, nameof(Models)),
            ["inputs"] = OptionText.List(Inputs, nameof(Inputs)),
        };
        if (Sample is not null)
        {
            json["sample"] = Sample;
        }
        if (Seed is not null)
        {
            json["seed"] = Seed;
        }
        if (Expect is not null)
        {
            json["expect"] = Expect;
        }
        return json.ToJsonString();
    }
}

/// <summary>The result of <see cref="AuditLog.Verify"/>.</summary>
public sealed class AuditReport
{
    private readonly string _json;

    internal AuditReport(string json)
    {
        _json = json;
        using JsonDocument document = JsonDocument.Parse(json);
        Verified = document.RootElement.Flag("verified");
        Records = document.RootElement.Count("records");
        Problems = document.RootElement.All("problems", problem => problem.Text("message"));
    }

    /// <summary>Whether nothing is wrong with the log, and whatever was to be computed again has the same bits.</summary>
    public bool Verified { get; }

    /// <summary>How many records are as they were written.</summary>
    public long Records { get; }

    /// <summary>Deviations from what was written, one line each, which names record and line.</summary>
    public IReadOnlyList<string> Problems { get; }

    /// <summary>Whether the log is as it was written and how many records are, then a line for each problem.</summary>
    public override string ToString() => string.Join(
        "\n", Problems.Prepend($"{(Verified ? "verified" : "not verified")}, {Records} records"));

    /// <summary>All of it, as the JSON document that docs/schemas calls audit.</summary>
    /// <returns>The text.</returns>
    public string ToJson() => _json;
}
