namespace Addend;

/// <summary>
/// A tensor that a model is given, with its split and its baseline.
/// <code>
/// var input = new Input(image) { Split = Split.Along(-2, -1), Baseline = black };
/// </code>
/// A tensor converts to a plain input by itself.
/// </summary>
/// <param name="Value">The tensor.</param>
public sealed record Input(Tensor Value)
{
    /// <summary>How it is divided into components; not at all unless said.</summary>
    public Split Split { get; init; } = Split.None;

    /// <summary>The value that means "nothing"; zero unless said.</summary>
    public Baseline? Baseline { get; init; }

    /// <summary>The names of its components, for people; those without a name are called by their position.</summary>
    public IReadOnlyList<string> Names { get; init; } = [];

    /// <summary>The position of its first component on the axis that all inputs share; null: right behind those of the
    /// inputs before it.</summary>
    public long? FirstComponent { get; init; }

    /// <summary>A plain input.</summary>
    /// <param name="value">The tensor.</param>
    public static implicit operator Input(Tensor value) => new(value);
}

/// <summary>
/// A tensor inside a model at which components begin, with its split and its baseline: the heads of an attention, neurons,
/// experts. What the model computes before it is the same for all of them, and its arguments are plain.
/// <code>
/// var heads = new Inside("aten::contiguous") { Split = Split.Along(1), Baseline = 0.0 };
/// using Results results = model.Decompose(new Request(x) { Inside = [heads] });
/// </code>
/// </summary>
/// <param name="Selector">Which floating-point tensor, told as in <see cref="Request.Probes"/>.</param>
public sealed record Inside(string Selector)
{
    /// <summary>How it is divided into components: along dimensions of the tensor, or by labels.</summary>
    public Split Split { get; init; } = Split.None;

    /// <summary>The value that means "nothing" there; zero unless said.</summary>
    public Baseline? Baseline { get; init; }

    /// <summary>The names of its components, for people; those without a name are called by their position.</summary>
    public IReadOnlyList<string> Names { get; init; } = [];

    /// <summary>The position of its first component on the axis that all inputs share; null: right behind those before
    /// it.</summary>
    public long? FirstComponent { get; init; }
}

/// <summary>The value that means "nothing" to a model: a black image, a mean row, the number of a mask token. A tensor,
/// a number and a word are converted implicitly.</summary>
public sealed record Baseline
{
    private Baseline(Tensor? tensor, double number, string? word = null)
    {
        Tensor = tensor;
        Number = number;
        Word = word;
    }

    internal Tensor? Tensor { get; }

    internal double Number { get; }

    internal string? Word { get; }

    internal bool IsSeveral { get; private init; }

    /// <summary>Several baselines, for <c>Model.Attribute</c> alone: it gives means over all of them,
    /// which add up to the value minus the mean of the model on the baselines.</summary>
    /// <param name="rows">[K, *]: each broadcasts to the input, or to one example of it where each has a target.</param>
    /// <returns>The baselines.</returns>
    public static Baseline Several(Tensor rows)
    {
        ArgumentNullException.ThrowIfNull(rows);
        return new Baseline(rows, 0) { IsSeveral = true };
    }

    /// <summary>A tensor that broadcasts to the input.</summary>
    /// <param name="tensor">The tensor.</param>
    public static implicit operator Baseline(Tensor tensor)
    {
        ArgumentNullException.ThrowIfNull(tensor);
        return new Baseline(tensor, 0);
    }

    /// <summary>One number for all elements.</summary>
    /// <param name="number">The number.</param>
    public static implicit operator Baseline(double number) => new(null, number);

    /// <summary>A baseline that is taken from the model, from a file of rows or from the input itself.</summary>
    /// <param name="word">"mean:FILE" or "median:FILE" of a file of rows (.npy or .safetensors), "buffer:NAME" of the model
    /// (the running mean of a batch normalization of this input), "mean" of each channel of an image, "blur" or
    /// "blur:SIGMA" of an image; for attributions also several baselines, "rows:FILE" (all rows of a file) or
    /// "nearest:10:FILE" (those nearest to the input by standardized Euclidean distance).</param>
    public static implicit operator Baseline(string word)
    {
        ArgumentNullException.ThrowIfNull(word);
        return new Baseline(null, 0, word);
    }
}
