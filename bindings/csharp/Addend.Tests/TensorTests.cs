using System.Numerics;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using Addend.Native;

namespace Addend.Tests;

public sealed class TensorTests
{
    [Fact]
    public void Copies_a_span_in_its_shape()
    {
        ReadOnlySpan<float> elements = [1, 2, 3, 4, 5, 6];
        using Tensor tensor = Tensor.From(elements, 2, 3);
        Assert.Equal([2L, 3L], tensor.Shape);
        Assert.Equal(6, tensor.Count);
        Assert.Equal(DType.Float32, tensor.DType);
        Assert.Equal("cpu", tensor.Device);
        Assert.Equal(elements.ToArray(), tensor.ToArray<float>());
    }

    [Fact]
    public void Has_one_dimension_where_no_shape_is_given()
    {
        using Tensor tensor = Tensor.From(new[] { 7L, 8L, 9L });
        Assert.Equal([3L], tensor.Shape);
    }

    [Fact]
    public void Takes_the_shape_of_an_array_of_two_dimensions()
    {
        using Tensor tensor = Tensor.From(new double[,] { { 1, 2, 3 }, { 4, 5, 6 } });
        Assert.Equal([2L, 3L], tensor.Shape);
        Assert.Equal([1, 2, 3, 4, 5, 6], tensor.ToArray<double>());
    }

    [Fact]
    public void Holds_every_type_that_has_a_dtype()
    {
        RoundTrip<byte>(DType.UInt8, 0, 255);
        RoundTrip<sbyte>(DType.Int8, -128, 127);
        RoundTrip<short>(DType.Int16, short.MinValue, short.MaxValue);
        RoundTrip(DType.Int32, int.MinValue, int.MaxValue);
        RoundTrip(DType.Int64, long.MinValue, long.MaxValue);
        RoundTrip(DType.Float16, (Half)0.5f, Half.MaxValue);
        RoundTrip(DType.Float32, float.NaN, float.NegativeInfinity);
        RoundTrip(DType.Float64, double.Epsilon, -0.0);
        RoundTrip(DType.Bool, true, false);
        RoundTrip(DType.Complex128, new Complex(1, -2), Complex.Infinity);
    }

    [Fact]
    public void Refuses_types_without_a_dtype()
    {
        Assert.Contains("System.Char", Assert.Throws<NotSupportedException>(() => Tensor.From(new[] { 'a' })).Message);
        Assert.Throws<NotSupportedException>(() => Tensor.From(new[,] { { "a" } }));
    }

    [Fact]
    public void A_scalar_has_no_dimensions()
    {
        using Tensor tensor = Tensor.Scalar(2.5);
        Assert.Empty(tensor.Shape);
        Assert.Equal([2.5], tensor.ToArray<double>());
    }

    [Fact]
    public void May_be_empty()
    {
        using Tensor copied = Tensor.From(Array.Empty<float>(), 0, 3);
        using Tensor wrapped = Tensor.Wrap(Array.Empty<float>(), 3, 0);
        Assert.Equal([0L, 3L], copied.Shape);
        Assert.Equal([3L, 0L], wrapped.Shape);
        Assert.Empty(copied.ToArray<float>());
        Assert.Empty(wrapped.ToArray<float>());
    }

    [Fact]
    public unsafe void Wraps_an_array_without_a_copy()
    {
        var elements = new float[] { 1, 2, 3, 4 };
        using Tensor tensor = Tensor.Wrap(elements, 2, 2);
        using TensorView<float> view = tensor.View<float>();
        Assert.True(Unsafe.AreSame(ref elements[0], ref Unsafe.AsRef(in view.Span[0])));
    }

    [Fact]
    public unsafe void Wraps_part_of_an_array()
    {
        var elements = new long[] { 0, 1, 2, 3, 4 };
        using Tensor tensor = Tensor.Wrap(elements.AsMemory(1, 3));
        using TensorView<long> view = tensor.View<long>();
        Assert.Equal([1L, 2L, 3L], view.Span.ToArray());
        Assert.True(Unsafe.AreSame(ref elements[1], ref Unsafe.AsRef(in view.Span[0])));
    }

    [Fact]
    public void Keeps_wrapped_memory_until_nothing_needs_it()
    {
        (Tensor tensor, WeakReference elements) = Wrapped();
        using Composition composition = Composition.FromParts(tensor);
        tensor.Dispose();
        Collect();
        Assert.True(elements.IsAlive, "the composition still reads it");
        using (Tensor components = composition.Components())
        {
            Assert.Equal([1f, 2f], components.ToArray<float>());
        }
        composition.Dispose();
        Collect();
        Assert.False(elements.IsAlive);
    }

    [Fact]
    public void Wraps_memory_at_an_address()
    {
        double[] elements = GC.AllocateArray<double>(6, pinned: true);
        for (int k = 0; k < elements.Length; k++)
        {
            elements[k] = k;
        }
        IntPtr data = Marshal.UnsafeAddrOfPinnedArrayElement(elements, 0);
        using Tensor rows = Tensor.Wrap(data, DType.Float64, [2, 3]);
        Assert.Equal([0, 1, 2, 3, 4, 5], rows.ToArray<double>());
        using Tensor columns = Tensor.Wrap(data, DType.Float64, [3, 2], [1, 3], elements);
        Assert.Equal([3L, 2L], columns.Shape);
        Assert.Equal([0, 3, 1, 4, 2, 5], columns.ToArray<double>());
        using Tensor every = Tensor.Wrap(data + 8, DType.Float64, [3], [2]);
        Assert.Equal([1, 3, 5], every.ToArray<double>());
        using Tensor one = Tensor.Wrap(data, DType.Float64, []);
        Assert.Empty(one.Shape);
        // No copy: what is written there is read here.
        elements[5] = 9;
        Assert.Equal(9, rows.ToArray<double>()[5]);

        Samples.Refuses(() => Tensor.Wrap(IntPtr.Zero, DType.Float64, [2]));
        Samples.Refuses(() => Tensor.Wrap(data + 1, DType.Float64, [2]));
        Samples.Refuses(() => Tensor.Wrap(data, DType.Float64, [2], [-1]));
        Samples.Refuses(() => Tensor.Wrap(data, DType.Float64, [2, 2], [1]));
        Samples.Refuses(() => Tensor.Wrap(data, DType.Float64, [-2]));
        Samples.Refuses(() => Tensor.Wrap(data, DType.Float64, [long.MaxValue, 8]));
        Assert.Throws<ArgumentNullException>(() => Tensor.Wrap(data, DType.Float64, null!));
    }

    [Fact]
    public void Keeps_the_owner_of_an_address_until_nothing_needs_it()
    {
        (Tensor tensor, WeakReference owner) = WrappedAddress();
        Tensor other = tensor.To();
        tensor.Dispose();
        Collect();
        Assert.True(owner.IsAlive, "another tensor still reads it");
        Assert.Equal([1f, 2f], other.ToArray<float>());
        other.Dispose();
        Collect();
        Assert.False(owner.IsAlive);
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public void Shares_memory_by_DLPack(bool versioned)
    {
        var elements = new float[] { 1, 2, 3, 4 };
        Tensor shared;
        using (Tensor tensor = Tensor.Wrap(elements, 2, 2))
        {
            shared = Tensor.FromDlpack(tensor.ToDlpack(versioned), versioned);
        }
        Assert.Equal([2L, 2L], shared.Shape);
        Assert.Equal([1, 2, 3, 4], shared.ToArray<float>());
        if (!versioned)
        {
            // The newer struct may say that its memory must not be written, which is copied then.
            elements[3] = 9;
            Assert.Equal(9, shared.ToArray<float>()[3]);
        }
        shared.Dispose();
        Assert.Equal(0, AddendNative.addend_debug_live(AddendNative.ADDEND_HANDLE_DLPACK));
        Samples.Refuses(() => Tensor.FromDlpack(IntPtr.Zero, versioned));
    }

    [Fact]
    public void A_view_keeps_the_memory_of_a_disposed_tensor()
    {
        Tensor tensor = Tensor.From(new[] { 1.0, 2.0 });
        using TensorView<double> view = tensor.View<double>();
        tensor.Dispose();
        Assert.Equal([1.0, 2.0], view.Span.ToArray());
    }

    [Fact]
    public void Reads_strided_tensors_row_by_row()
    {
        using Tensor tensor = Tensor.From(new double[,] { { 1, 2, 3 }, { 4, 5, 6 } });
        using Results results = Operators.Call("aten::t", tensor);
        using Tensor transposed = results.Tensor();
        Assert.Equal([3L, 2L], transposed.Shape);
        Assert.Equal([1L, 3L], transposed.Strides);
        Assert.Equal(48, transposed.ByteCount);
        Assert.Equal([1, 4, 2, 5, 3, 6], transposed.ToArray<double>());
    }

    [Fact]
    public void Converts()
    {
        using Tensor tensor = Tensor.From(new[] { 1.75, -2.5 });
        using Tensor converted = tensor.To(DType.Int64);
        Assert.Equal([1L, -2L], converted.ToArray<long>());
        Assert.Contains("To(DType.Float32)", Assert.Throws<InvalidOperationException>(() => tensor.ToArray<float>()).Message);
    }

    [Fact]
    public void Copies_into_a_span_that_is_long_enough()
    {
        using Tensor tensor = Tensor.From(new[] { 1, 2, 3 });
        var destination = new int[4];
        tensor.CopyTo(destination.AsSpan());
        Assert.Equal([1, 2, 3, 0], destination);
        Assert.Contains("2 elements, the tensor 3", Assert.Throws<ArgumentException>(() => tensor.CopyTo(new int[2].AsSpan())).Message);
    }

    [Fact]
    public void Refuses_shapes_that_do_not_fit()
    {
        ArgumentException thrown = Assert.Throws<ArgumentException>(() => Tensor.From(new float[8], 2, 5));
        Assert.Contains("buffer has 32 bytes, shape [2, 5] needs 40", thrown.Message);
        Assert.Equal(ErrorCode.InvalidArgument, Samples.CodeOf(thrown));
        Assert.Equal(ErrorCode.InvalidArgument, Assert.IsType<AddendException>(thrown.InnerException).Code);
        Assert.Throws<ArgumentException>(() => Tensor.From(new float[8], -2, -4));
        Assert.Throws<ArgumentException>(() => Tensor.From(new float[8], long.MaxValue, 8));
        Assert.Throws<ArgumentException>(() => Tensor.Wrap(new float[8], 3, 3));
        Assert.Throws<ArgumentNullException>(() => Tensor.From(new float[8], null!));
    }

    [Fact]
    public void Memory_that_was_refused_is_not_kept()
    {
        WeakReference elements = Refused();
        Collect();
        Assert.False(elements.IsAlive);
    }

    [Fact]
    public void Prints_as_PyTorch_does()
    {
        using Tensor tensor = Tensor.From(new[] { 1f, 2f });
        Assert.Contains("[1., 2.]", tensor.ToString());
    }

    [Fact]
    public void Disposed_tensors_say_so()
    {
        Tensor tensor = Tensor.From(new[] { 1f });
        tensor.Dispose();
        tensor.Dispose();
        Assert.Throws<ObjectDisposedException>(() => tensor.DType);
        Assert.Throws<ObjectDisposedException>(() => tensor.Device);
        Assert.Throws<ObjectDisposedException>(() => tensor.Shape);
        Assert.Throws<ObjectDisposedException>(() => tensor.ToArray<float>());
        Assert.Throws<ObjectDisposedException>(() => tensor.ToString());
        Assert.Throws<ObjectDisposedException>(() => Composition.Diagonal(tensor));
    }

    internal static void Collect()
    {
        for (int round = 0; round < 3; round++)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
        }
    }

    private static void RoundTrip<T>(DType dtype, params T[] elements)
        where T : unmanaged
    {
        using Tensor tensor = Tensor.From(elements);
        Assert.Equal(dtype, tensor.DType);
        Assert.Equal(elements, tensor.ToArray<T>());
    }

    // Not inlined: a caller's frame would keep the array.
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static (Tensor Tensor, WeakReference Elements) Wrapped()
    {
        var elements = new float[] { 1, 2 };
        return (Tensor.Wrap(elements, 2, 1), new WeakReference(elements));
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static (Tensor Tensor, WeakReference Owner) WrappedAddress()
    {
        float[] elements = GC.AllocateArray<float>(2, pinned: true);
        (elements[0], elements[1]) = (1, 2);
        IntPtr data = Marshal.UnsafeAddrOfPinnedArrayElement(elements, 0);
        return (Tensor.Wrap(data, DType.Float32, [2], null, elements), new WeakReference(elements));
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static WeakReference Refused()
    {
        var elements = new float[4];
        Assert.Throws<ArgumentException>(() => Tensor.Wrap(elements, 5));
        return new WeakReference(elements);
    }
}
