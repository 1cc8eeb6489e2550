namespace Addend.Tests;

/// <summary>Fields that the programs of docs/csharp.md use without defining them: an image of an eight, a model that
/// has learned digits, a logger.</summary>
public abstract class DocsPage : IDisposable
{
    private readonly Scope _scope = new();
    private readonly string _folder = Directory.CreateTempSubdirectory("addend").FullName;

    protected DocsPage()
    {
        model = Samples.Digits();
        image = Samples.Eight().Value;
        input = Samples.Eight();
        images = Tensor.From(Enumerable.Repeat(image.ToArray<float>(), 4).SelectMany(pixels => pixels).ToArray(), 4, 1, 8, 8);
    }

#pragma warning disable CA1051, SA1401, IDE1006 // The page has local variables of these names.
    protected readonly Model model;
    protected readonly Tensor image;
    protected readonly Tensor images;
    protected readonly Input input;
    protected readonly Lines logger = new();
    protected readonly IProgress<RunProgress> progress = new Progress<RunProgress>();
    protected readonly CancellationToken token = CancellationToken.None;
    protected readonly Tensor tokens = Tensor.From(new long[] { 3, 1, 4, 1 }, 1, 4);
    protected readonly Tensor mask = Tensor.From(new float[] { 1, 1, 1, 0 }, 1, 4);
    protected readonly string[] words = ["all", "of", "it", "-"];
    protected readonly Tensor x = Tensor.From(new float[] { 1, -2, 3 });
    protected readonly Tensor left = Tensor.From(new float[] { 1, 2 });
    protected readonly Tensor right = Tensor.From(new float[] { 3, 4 });
    protected readonly Tensor weight = Tensor.From(new float[] { 1, 2, 3, 4 }, 2, 2);
#pragma warning restore

    /// <summary>A composition of two rows.</summary>
    protected static Composition Parts =>
        Composition.Diagonal(Tensor.From(new float[] { 1, 2, 3, 4 }, 2, 2), [0]);

    public void Dispose()
    {
        _scope.Dispose();
        Directory.Delete(_folder, recursive: true);
        GC.SuppressFinalize(this);
    }

    /// <summary>A file by the name that the page calls it.</summary>
    protected string Here(string name) => name switch
    {
        "model.pt2" => Samples.ExportedDigitsPath,
        "sample.safetensors" => Samples.DigitsSamplePath,
        _ => Path.Combine(_folder, name),
    };

    /// <summary>A model of tokens and a mask: classes of the words that the mask keeps.</summary>
    protected Model Text()
    {
        Tensor table = Tensor.From(new float[] { 0, 0, 1, 2, 3, 1, -1, 2, 2, -2 }, 5, 2);
        var inputs = new Dictionary<string, Input> { ["tokens"] = tokens, ["mask"] = mask };
        using var recording = new RecordingScope(new Request(inputs));
        Tensor found = Operators.Call("aten::embedding", table, tokens).Tensor();
        Tensor kept = Operators.Call("aten::mul", found, Operators.Call("aten::unsqueeze", mask, -1).Tensor()).Tensor();
        recording.AddOutput(Operators.Call("aten::sum", kept).Tensor());
        return recording.End().ToModel();
    }

    /// <summary>Calls an operator that has no rule.</summary>
    protected static void WithoutRule() => Operators.Call("aten::histc", Parts);

    /// <summary>Takes what the page gives a logger.</summary>
    protected sealed class Lines
    {
        /// <summary>Takes a line.</summary>
        /// <param name="text">With a name in braces.</param>
        /// <param name="line">What stands for the name.</param>
        public void LogInformation(string text, string line)
        {
            Assert.Equal("{Line}", text);
            Assert.NotEmpty(line);
            Count++;
        }

        /// <summary>How many there were.</summary>
        public int Count { get; private set; }
    }
}
