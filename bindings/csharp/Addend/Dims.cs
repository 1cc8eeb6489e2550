using System.Collections;
using System.Runtime.CompilerServices;

namespace Addend;

/// <summary>Some integers for an operator: dimensions, sizes, strides. One integer, an array and a collection expression
/// (<c>[0, 1]</c>) convert to it by themselves.</summary>
[CollectionBuilder(typeof(Dims), nameof(Create))]
public readonly struct Dims : IEnumerable<long>
{
    private readonly long[]? _values;

    private Dims(long[] values) => _values = values;

    internal long[] Values => _values ?? [];

    /// <summary>One integer.</summary>
    /// <param name="value">The integer.</param>
    public static implicit operator Dims(long value) => new([value]);

    /// <summary>All integers of an array.</summary>
    /// <param name="values">The array, which is copied.</param>
    public static implicit operator Dims(long[] values)
    {
        ArgumentNullException.ThrowIfNull(values);
        return Create(values);
    }

    /// <summary>Makes it of some integers.</summary>
    /// <param name="values">The integers.</param>
    /// <returns>The same integers.</returns>
    public static Dims Create(ReadOnlySpan<long> values) => new(values.ToArray());

    /// <summary>The dimensions, one after the other.</summary>
    public IEnumerator<long> GetEnumerator() => ((IEnumerable<long>)Values).GetEnumerator();

    IEnumerator IEnumerable.GetEnumerator() => GetEnumerator();
}
