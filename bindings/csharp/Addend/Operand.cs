namespace Addend;

/// <summary>The operand of an operator in place of a tensor: a composition or a plain tensor, both of which are
/// converted implicitly.</summary>
public readonly record struct Operand
{
    private readonly AddendObject? _value;

    private Operand(AddendObject value) => _value = value;

    internal Argument Argument => _value switch
    {
        Composition composition => composition,
        Tensor tensor => tensor,
        _ => throw new ArgumentException("an operand is missing: default(Operand) is neither composition nor tensor"),
    };

    /// <summary>A composition.</summary>
    /// <param name="composition">The composition.</param>
    public static implicit operator Operand(Composition composition)
    {
        ArgumentNullException.ThrowIfNull(composition);
        return new Operand(composition);
    }

    /// <summary>A plain tensor: a weight, a mask, an index.</summary>
    /// <param name="tensor">The tensor.</param>
    public static implicit operator Operand(Tensor tensor)
    {
        ArgumentNullException.ThrowIfNull(tensor);
        return new Operand(tensor);
    }
}
