using System.Text.Json.Nodes;
using Addend.Native;

namespace Addend;

/// <summary>Options of a <see cref="Job"/>: where its rows are, and what its results hold.</summary>
public sealed class JobOptions
{
    private readonly string[] _rows;

    /// <summary>Rows in tensors.</summary>
    /// <param name="rows">By input of the model, a .npy or .safetensors file whose tensor has the rows along dimension 0:
    /// FILE or FILE#NAME.</param>
    public JobOptions(params string[] rows)
    {
        ArgumentNullException.ThrowIfNull(rows);
        _rows = rows;
    }

    /// <summary>Tensors of integers beside the first input, by which rows are put together.</summary>
    public IReadOnlyList<string> Groups { get; init; } = [];

    /// <summary>Names of the components; by their positions unless given.</summary>
    public IReadOnlyList<string> Names { get; init; } = [];

    /// <summary>Names of the elements of the output.</summary>
    public IReadOnlyList<string> Classes { get; init; } = [];

    /// <summary>A description of concepts, as JSON, in which results hold reasons; null: none.</summary>
    public string? Concepts { get; init; }

    /// <summary>Whether results hold contributions.</summary>
    public bool Contributions { get; init; } = true;

    /// <summary>The format of results: safetensors or csv.</summary>
    public string Format { get; init; } = "safetensors";

    /// <summary>Whether a row that cannot be attributed ends its shard, instead of being listed.</summary>
    public bool StopAtRefusal { get; init; }

    /// <summary>The dtype that the numbers of the model are converted to, float32 or float64; null: as they
    /// are.</summary>
    public string? DType { get; init; }

    /// <summary>The device on which workers compute: cpu, or cuda, the GPU that each worker is given.</summary>
    public string Device { get; init; } = "cpu";

    /// <summary>How many rows are attributed together, on which bits depend.</summary>
    public long Batch { get; init; } = 256;

    /// <summary>How many shards there are, about; null: as many as take ten seconds each.</summary>
    public long? Shards { get; init; }

    internal string ToJson()
    {
        var json = new JsonObject
        {
            ["inputs"] = OptionText.List(_rows, "rows"),
            ["groups"] = OptionText.List(Groups, nameof(Groups)),
            ["names"] = OptionText.List(Names, nameof(Names)),
            ["classes"] = OptionText.List(Classes, nameof(Classes)),
            ["contributions"] = Contributions,
            ["format"] = Text.Checked(Format, nameof(Format)),
            ["stop_at_refusal"] = StopAtRefusal,
            ["device"] = Text.Checked(Device, nameof(Device)),
            ["batch"] = Batch,
        };
        if (Concepts is not null)
        {
            json["concepts"] = OptionText.Parsed(Concepts, nameof(Concepts));
        }
        if (DType is not null)
        {
            json["dtype"] = Text.Checked(DType, nameof(DType));
        }
        if (Shards is not null)
        {
            json["shards"] = Shards;
        }
        return json.ToJsonString();
    }
}
