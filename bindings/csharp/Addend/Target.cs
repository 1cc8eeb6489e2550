using System.Globalization;

namespace Addend;

/// <summary>Which number of a composition is explained. Its text form converts by itself: <c>"top1"</c>, <c>"2"</c>,
/// <c>"0,2"</c>, <c>"0,2-0,7"</c>.</summary>
public readonly record struct Target
{
    private readonly string? _text;

    private Target(string text) => _text = text;

    /// <summary>The largest element, which default(Target) is too.</summary>
    public static Target Top => default;

    internal string Text => _text ?? "top1";

    /// <summary>An element.</summary>
    /// <param name="index">Its position in every dimension; dimensions of size 1 in front may be left out.</param>
    /// <returns>The target.</returns>
    public static Target At(params long[] index)
    {
        ArgumentNullException.ThrowIfNull(index);
        return new Target(string.Join(',', index.Select(i => i.ToString(CultureInfo.InvariantCulture))));
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
}
