using System.Buffers;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using Addend.Native;

namespace Addend;

/// <summary>A plain tensor, on its way into the library or out of it. It never changes.</summary>
public sealed partial class Tensor : AddendObject
{
    private long[]? _shape;

    internal Tensor(TensorHandle handle)
        : base(handle)
    {
    }

    internal TensorHandle Handle => (TensorHandle)OwnedHandle;

    /// <summary>The sizes of its dimensions.</summary>
    public IReadOnlyList<long> Shape => _shape ??= ReadShape();

    /// <summary>The dtype of its elements.</summary>
    public DType DType => (DType)AddendNative.addend_tensor_dtype(Handle);

    /// <summary>The device of its elements: <c>cpu</c>, <c>cuda:0</c>.</summary>
    public string Device => Text.Borrowed(Handle, AddendNative.addend_tensor_device) ?? "";

    /// <summary>How many elements it has.</summary>
    public long Count => Shape.Aggregate(1L, (count, size) => count * size);

    /// <summary>How many elements each dimension moves by.</summary>
    public IReadOnlyList<long> Strides =>
        [.. Enumerable.Range(0, Shape.Count).Select(dim => AddendNative.addend_tensor_stride(Handle, (nuint)dim))];

    /// <summary>How many bytes the elements take, one behind the other.</summary>
    public long ByteCount => checked((long)AddendNative.addend_tensor_num_bytes(Handle));

    /// <summary>A copy of some elements.</summary>
    /// <typeparam name="T">The .NET type of the elements, which says the dtype.</typeparam>
    /// <param name="elements">The elements, row by row.</param>
    /// <param name="shape">The sizes of the dimensions; none: one dimension of all elements.</param>
    /// <returns>A new tensor.</returns>
    public static unsafe Tensor From<T>(ReadOnlySpan<T> elements, params long[] shape)
        where T : unmanaged
    {
        fixed (T* data = elements)
        {
            return Copy(data, elements.Length, sizeof(T), DTypes.Of<T>(), shape);
        }
    }

    /// <inheritdoc cref="From{T}(ReadOnlySpan{T}, long[])"/>
    public static Tensor From<T>(Span<T> elements, params long[] shape)
        where T : unmanaged
        => From((ReadOnlySpan<T>)elements, shape);

    /// <inheritdoc cref="From{T}(ReadOnlySpan{T}, long[])"/>
    public static Tensor From<T>(T[] elements, params long[] shape)
        where T : unmanaged
    {
        ArgumentNullException.ThrowIfNull(elements);
        return From((ReadOnlySpan<T>)elements, shape);
    }

    /// <summary>A copy of an array of any rank, in its shape.</summary>
    /// <param name="elements">The array, as <c>float[,]</c>.</param>
    /// <returns>A new tensor.</returns>
    public static unsafe Tensor From(Array elements)
    {
        ArgumentNullException.ThrowIfNull(elements);
        Type type = elements.GetType().GetElementType()!;
        DType dtype = DTypes.Of(type);
        var shape = new long[elements.Rank];
        for (int dim = 0; dim < shape.Length; dim++)
        {
            shape[dim] = elements.GetLongLength(dim);
        }
        fixed (byte* data = &MemoryMarshal.GetArrayDataReference(elements))
        {
            return Copy(data, elements.LongLength, ((int)dtype >> 8) / 8, dtype, shape);
        }
    }

    /// <summary>A tensor of one element without dimensions.</summary>
    /// <typeparam name="T">The .NET type of the element, which says the dtype.</typeparam>
    /// <param name="element">The element.</param>
    /// <returns>A new tensor.</returns>
    public static unsafe Tensor Scalar<T>(T element)
        where T : unmanaged
    {
        AddendNative.addend_tensor_copy(
            (IntPtr)(&element), (nuint)sizeof(T), (int)DTypes.Of<T>(), [], 0, out TensorHandle handle);
        return new Tensor(handle);
    }

    /// <summary>
    /// A tensor on the caller's memory, without a copy. The memory stays pinned until no object of the library needs it
    /// any more; it must not be written until then.
    /// </summary>
    /// <typeparam name="T">The .NET type of the elements, which says the dtype.</typeparam>
    /// <param name="memory">The elements, row by row; an array converts by itself.</param>
    /// <param name="shape">The sizes of the dimensions; none: one dimension of all elements.</param>
    /// <returns>A new tensor.</returns>
    public static unsafe Tensor Wrap<T>(Memory<T> memory, params long[] shape)
        where T : unmanaged
    {
        int dtype = (int)DTypes.Of<T>();
        long[] dims = ShapeOr(shape, memory.Length);
        MemoryHandle pinned = memory.Pin();
        // The boxed pin is what the library gives back when it needs the memory no longer.
        GCHandle payload = GCHandle.Alloc(pinned);
        try
        {
            AddendNative.addend_tensor_wrap(
                (IntPtr)pinned.Pointer,
                (nuint)memory.Length * (nuint)sizeof(T),
                dtype,
                dims,
                (nuint)dims.Length,
                null!, // no strides: contiguous
                0,
                Callbacks.Unpin,
                GCHandle.ToIntPtr(payload),
                out TensorHandle handle);
            return new Tensor(handle);
        }
        catch
        {
            payload.Free();
            pinned.Dispose();
            throw;
        }
    }

    /// <inheritdoc cref="Wrap{T}(Memory{T}, long[])"/>
    public static Tensor Wrap<T>(T[] memory, params long[] shape)
        where T : unmanaged
    {
        ArgumentNullException.ThrowIfNull(memory);
        return Wrap(memory.AsMemory(), shape);
    }

    /// <summary>The tensor in another dtype or on another device, contiguous; without a copy where it is so
    /// already.</summary>
    /// <param name="dtype">The dtype; null: as it is.</param>
    /// <param name="device">The device; null: where it is.</param>
    /// <returns>A new tensor.</returns>
    public Tensor To(DType? dtype = null, string? device = null)
    {
        AddendNative.addend_tensor_to(
            Handle, (int)(dtype ?? 0), device is null ? null! : Text.Checked(device, nameof(device)), out TensorHandle handle);
        return new Tensor(handle);
    }

    /// <summary>Its elements where they are, to be read inside a <c>using</c>.</summary>
    /// <typeparam name="T">The .NET type of its dtype.</typeparam>
    /// <returns>A view, which keeps the memory until it is disposed.</returns>
    /// <exception cref="InvalidOperationException">Its dtype is another one.</exception>
    public TensorView<T> View<T>()
        where T : unmanaged
    {
        DType dtype = DType;
        if (dtype != DTypes.Of<T>())
        {
            throw new InvalidOperationException(
                $"the tensor holds {dtype}, not {DTypes.Of<T>()}: convert it with To(DType.{DTypes.Of<T>()})");
        }
        AddendNative.addend_tensor_to(Handle, 0, "cpu", out TensorHandle contiguous);
        return new TensorView<T>(contiguous, checked((int)Count));
    }

    /// <summary>A copy of its elements, row by row.</summary>
    /// <typeparam name="T">The .NET type of its dtype.</typeparam>
    /// <returns>A new array.</returns>
    /// <exception cref="InvalidOperationException">Its dtype is another one.</exception>
    public T[] ToArray<T>()
        where T : unmanaged
    {
        using TensorView<T> view = View<T>();
        return view.Span.ToArray();
    }

    /// <summary>Copies its elements, row by row.</summary>
    /// <typeparam name="T">The .NET type of its dtype.</typeparam>
    /// <param name="destination">Where to; at least as long as the tensor has elements.</param>
    /// <exception cref="InvalidOperationException">Its dtype is another one.</exception>
    public void CopyTo<T>(Span<T> destination)
        where T : unmanaged
    {
        using TensorView<T> view = View<T>();
        if (destination.Length < view.Span.Length)
        {
            throw new ArgumentException(
                $"destination has {destination.Length} elements, the tensor {view.Span.Length}", nameof(destination));
        }
        view.Span.CopyTo(destination);
    }

    /// <summary>The tensor as PyTorch prints it.</summary>
    /// <returns>Several lines.</returns>
    public override string ToString() => Text.Of(Handle, AddendNative.addend_tensor_to_string);

    private static unsafe Tensor Copy(void* data, long count, int elementSize, DType dtype, long[] shape)
    {
        long[] dims = ShapeOr(shape, count);
        AddendNative.addend_tensor_copy(
            (IntPtr)data,
            checked((nuint)count * (nuint)elementSize),
            (int)dtype,
            dims,
            (nuint)dims.Length,
            out TensorHandle handle);
        return new Tensor(handle);
    }

    private static long[] ShapeOr(long[] shape, long count)
    {
        ArgumentNullException.ThrowIfNull(shape);
        return shape.Length > 0 ? shape : [count];
    }

    private long[] ReadShape()
    {
        var shape = new long[checked((int)AddendNative.addend_tensor_num_dims(Handle))];
        for (int dim = 0; dim < shape.Length; dim++)
        {
            shape[dim] = AddendNative.addend_tensor_size(Handle, (nuint)dim);
        }
        return shape;
    }
}
