using System.Numerics;
using Addend.Native;

namespace Addend;

/// <summary>The type of the elements of a tensor.</summary>
public enum DType
{
    /// <summary><see cref="byte"/>.</summary>
    UInt8 = AddendNative.ADDEND_UINT8,

    /// <summary><see cref="sbyte"/>.</summary>
    Int8 = AddendNative.ADDEND_INT8,

    /// <summary><see cref="short"/>.</summary>
    Int16 = AddendNative.ADDEND_INT16,

    /// <summary><see cref="int"/>.</summary>
    Int32 = AddendNative.ADDEND_INT32,

    /// <summary><see cref="long"/>.</summary>
    Int64 = AddendNative.ADDEND_INT64,

    /// <summary><see cref="Half"/>.</summary>
    Float16 = AddendNative.ADDEND_FLOAT16,

    /// <summary><see cref="float"/>.</summary>
    Float32 = AddendNative.ADDEND_FLOAT32,

    /// <summary><see cref="double"/>.</summary>
    Float64 = AddendNative.ADDEND_FLOAT64,

    /// <summary>The upper half of a <see cref="float"/>; .NET has no type for it.</summary>
    BFloat16 = AddendNative.ADDEND_BFLOAT16,

    /// <summary>Two <see cref="float"/>; .NET has no type for it.</summary>
    Complex64 = AddendNative.ADDEND_COMPLEX64,

    /// <summary><see cref="Complex"/>.</summary>
    Complex128 = AddendNative.ADDEND_COMPLEX128,

    /// <summary><see cref="bool"/>.</summary>
    Bool = AddendNative.ADDEND_BOOL,
}

internal static class DTypes
{
    /// <summary>The dtype whose elements are laid out as the type's.</summary>
    internal static DType Of<T>()
        where T : unmanaged
        => Of(typeof(T));

    internal static DType Of(Type type) =>
        type == typeof(float) ? DType.Float32
        : type == typeof(double) ? DType.Float64
        : type == typeof(long) ? DType.Int64
        : type == typeof(int) ? DType.Int32
        : type == typeof(bool) ? DType.Bool
        : type == typeof(byte) ? DType.UInt8
        : type == typeof(sbyte) ? DType.Int8
        : type == typeof(short) ? DType.Int16
        : type == typeof(Half) ? DType.Float16
        : type == typeof(Complex) ? DType.Complex128
        : throw new NotSupportedException($"no dtype holds elements of {type}");
}
