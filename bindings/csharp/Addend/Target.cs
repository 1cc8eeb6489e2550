using System.Globalization;

namespace Addend;

/// <summary>Which number of a composition is explained. Its text form converts by itself: <c>"top1"</c>, <c>"2"</c>,
/// <c>"0,2"</c>, <c>"0,2-0,7"</c>, <c>"log_probability:7"</c>, <c>"entropy"</c>, <c>"sum:2+7"</c>;
/// <c>"sum:0,2,:,10:20"</c> is the sum of a region.</summary>
public readonly record struct Target
{
    private readonly string? _text;

    private Target(string text) => _text = text;

    /// <summary>The largest element, which default(Target) is too.</summary>
    public static Target Top => default;

    internal string Text => _text ?? "top1";

    /// <summary>An element.</summary>
    /// <param name="index">Its position in every dimension; dimensions of size 1 in front may be left out. None: the only
    /// element of a tensor without dimensions.</param>
    /// <returns>The target.</returns>
    public static Target At(params long[] index)
    {
        ArgumentNullException.ThrowIfNull(index);
        return new Target(index.Length == 0 ? "()" : Join(index));
    }

    /// <summary>The probability of an element under softmax over the last dimension.</summary>
    /// <param name="index">Its position in every dimension; a class alone is that of the last position. None: the
    /// largest element.</param>
    /// <returns>The target.</returns>
    public static Target Probability(params long[] index)
    {
        ArgumentNullException.ThrowIfNull(index);
        return new Target("probability:" + (index.Length == 0 ? Top.Text : Join(index)));
    }

    /// <summary>The logarithm of the probability of an element under softmax over the last dimension.</summary>
    /// <param name="index">Its position in every dimension; a class alone is that of the last position. None: the
    /// largest element.</param>
    /// <returns>The target.</returns>
    public static Target LogProbability(params long[] index)
    {
        ArgumentNullException.ThrowIfNull(index);
        return new Target("log_probability:" + (index.Length == 0 ? Top.Text : Join(index)));
    }

    /// <summary>The entropy, in nats, of the softmax over the last dimension.</summary>
    /// <param name="position">The position in every dimension but the last. None: the last position of a
    /// sequence.</param>
    /// <returns>The target.</returns>
    public static Target Entropy(params long[] position)
    {
        ArgumentNullException.ThrowIfNull(position);
        return new Target(position.Length == 0 ? "entropy" : "entropy:" + Join(position));
    }

    /// <summary>The log-probability of a continuation, each id given those before it. The model is given prompt and
    /// continuation in one, and its output has a row of classes for each position.</summary>
    /// <param name="ids">The last ids of the input.</param>
    /// <returns>The target.</returns>
    public static Target Continuation(params long[] ids)
    {
        ArgumentNullException.ThrowIfNull(ids);
        return new Target("continuation:" + Join(ids));
    }

    /// <summary>The sum of several targets, as one number.</summary>
    /// <param name="targets">The targets, none of which is a sum.</param>
    /// <returns>The target.</returns>
    public static Target Sum(params Target[] targets)
    {
        ArgumentNullException.ThrowIfNull(targets);
        return new Target("sum:" + string.Join('+', targets.Select(target => target.Text)));
    }

    /// <summary>A text form.</summary>
    /// <param name="text">The text.</param>
    public static implicit operator Target(string text) => new(Native.Text.Checked(text, nameof(text)));

    /// <summary>This element minus another one: why this class and not that one.</summary>
    /// <param name="other">The other element.</param>
    /// <returns>The target.</returns>
    public Target Minus(Target other) => new($"{Text}-{other.Text}");

    /// <summary>The text form.</summary>
    /// <returns>The text.</returns>
    public override string ToString() => Text;

    private static string Join(long[] numbers) =>
        string.Join(',', numbers.Select(i => i.ToString(CultureInfo.InvariantCulture)));
}
