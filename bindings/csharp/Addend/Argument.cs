using Addend.Native;

namespace Addend;

/// <summary>
/// One argument of <see cref="Operators.Call(string, Argument[])"/>. Compositions, tensors, numbers, bools, text, dtypes
/// and arrays of them convert to it by themselves; <see cref="Named"/> passes one by name.
/// </summary>
public readonly struct Argument
{
    private static readonly object LeftOut = new();

    private readonly object? _value;
    private readonly string? _name;

    private Argument(object? value, string? name = null)
    {
        _value = value;
        _name = name;
    }

    /// <summary>LibTorch's None.</summary>
    public static Argument None => default;

    /// <summary>An argument by its name in the schema; those without a name come in the schema's order.</summary>
    /// <param name="name">The name.</param>
    /// <param name="value">The argument.</param>
    /// <returns>The same argument, named.</returns>
    public static Argument Named(string name, Argument value) => new(value._value, Text.Checked(name, nameof(name)));

    /// <summary>A composition.</summary>
    /// <param name="value">The composition.</param>
    public static implicit operator Argument(Composition value) => new(Given(value));

    /// <summary>A plain tensor.</summary>
    /// <param name="value">The tensor.</param>
    public static implicit operator Argument(Tensor value) => new(Given(value));

    /// <summary>A composition or a tensor.</summary>
    /// <param name="value">The operand.</param>
    public static implicit operator Argument(Operand value) => value.Argument;

    /// <summary>A number.</summary>
    /// <param name="value">The number.</param>
    public static implicit operator Argument(Scalar value) => value.Argument;

    /// <summary>An integer.</summary>
    /// <param name="value">The integer.</param>
    public static implicit operator Argument(long value) => new(value);

    /// <summary>A floating-point number.</summary>
    /// <param name="value">The number.</param>
    public static implicit operator Argument(double value) => new(value);

    /// <summary>A bool.</summary>
    /// <param name="value">The bool.</param>
    public static implicit operator Argument(bool value) => new(value);

    /// <summary>A text.</summary>
    /// <param name="value">The text.</param>
    public static implicit operator Argument(string value) => new(Text.Checked(value, nameof(value)));

    /// <summary>A dtype.</summary>
    /// <param name="value">The dtype.</param>
    public static implicit operator Argument(DType value) => new(value);

    /// <summary>Some integers.</summary>
    /// <param name="value">The integers.</param>
    public static implicit operator Argument(Dims value) => new(value.Values);

    /// <summary>Some integers.</summary>
    /// <param name="value">The integers.</param>
    public static implicit operator Argument(long[] value) => new(Given(value));

    /// <summary>A list of compositions.</summary>
    /// <param name="value">The list.</param>
    public static implicit operator Argument(Composition[] value) =>
        new(Array.ConvertAll(Given(value), item => (Argument)item));

    /// <summary>A list of tensors.</summary>
    /// <param name="value">The list.</param>
    public static implicit operator Argument(Tensor[] value) =>
        new(Array.ConvertAll(Given(value), item => (Argument)item));

    /// <summary>A list of compositions and tensors.</summary>
    /// <param name="value">The list.</param>
    public static implicit operator Argument(Operand[] value) =>
        new(Array.ConvertAll(Given(value), item => (Argument)item));

    /// <summary>A list of anything.</summary>
    /// <param name="value">The list.</param>
    public static implicit operator Argument(Argument[] value) => new(Given(value));

    /// <summary>An argument that may be left out, so that the operator's own default holds.</summary>
    internal static Argument Optional(string name, Argument? value) =>
        value is { } given ? Named(name, given) : new Argument(LeftOut);

    internal static ArgumentsHandle Pack(ReadOnlySpan<Argument> arguments)
    {
        AddendNative.addend_arguments_create(out ArgumentsHandle packed);
        try
        {
            foreach (Argument argument in arguments)
            {
                argument.AddTo(packed);
            }
            return packed;
        }
        catch
        {
            packed.Dispose();
            throw;
        }
    }

    // The name is null for an argument in the schema's order, as C wants it.
    private void AddTo(ArgumentsHandle packed)
    {
        string name = _name!;
        switch (_value)
        {
            case var left when ReferenceEquals(left, LeftOut):
                break;
            case null:
                AddendNative.addend_arguments_add_none(packed, name);
                break;
            case Composition composition:
                AddendNative.addend_arguments_add_composition(packed, name, composition.Handle);
                break;
            case Tensor tensor:
                AddendNative.addend_arguments_add_tensor(packed, name, tensor.Handle);
                break;
            case long number:
                AddendNative.addend_arguments_add_i64(packed, name, number);
                break;
            case double number:
                AddendNative.addend_arguments_add_f64(packed, name, number);
                break;
            case bool truth:
                AddendNative.addend_arguments_add_bool(packed, name, truth ? 1 : 0);
                break;
            case string text:
                AddendNative.addend_arguments_add_str(packed, name, text);
                break;
            case DType dtype:
                AddendNative.addend_arguments_add_dtype(packed, name, (int)dtype);
                break;
            case long[] integers:
                AddendNative.addend_arguments_add_i64s(packed, name, integers, (nuint)integers.Length);
                break;
            case Argument[] list:
                AddendNative.addend_arguments_begin_list(packed, name);
                foreach (Argument item in list)
                {
                    item.AddTo(packed);
                }
                AddendNative.addend_arguments_end_list(packed);
                break;
        }
    }

    private static T Given<T>(T value)
        where T : class
    {
        ArgumentNullException.ThrowIfNull(value);
        return value;
    }
}
