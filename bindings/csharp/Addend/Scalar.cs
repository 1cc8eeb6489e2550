namespace Addend;

/// <summary>A number that an operator takes: an integer, a floating-point number or a bool, which convert to it by
/// themselves.</summary>
public readonly record struct Scalar
{
    private readonly object? _value;

    private Scalar(object value) => _value = value;

    internal Argument Argument => _value switch
    {
        double value => value,
        bool value => value,
        long value => value,
        _ => 0L,
    };

    internal Tensor ToTensor(DType dtype, string device)
    {
        using Tensor number = _value switch
        {
            double value => Tensor.Scalar(value),
            bool value => Tensor.Scalar(value),
            long value => Tensor.Scalar(value),
            _ => Tensor.Scalar(0L),
        };
        return number.To(dtype, device);
    }

    /// <summary>An integer.</summary>
    /// <param name="value">The integer.</param>
    public static implicit operator Scalar(long value) => new(value);

    /// <summary>A floating-point number.</summary>
    /// <param name="value">The number.</param>
    public static implicit operator Scalar(double value) => new(value);

    /// <summary>A bool.</summary>
    /// <param name="value">The bool.</param>
    public static implicit operator Scalar(bool value) => new(value);
}
