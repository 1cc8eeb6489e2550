using System.Runtime.InteropServices;
using Addend.Native;

namespace Addend;

// Memory of other native libraries in this process, and what they are given.
public sealed partial class Tensor
{
    /// <summary>A tensor on memory at an address, without a copy.</summary>
    /// <param name="data">The address of the first element, on the CPU, aligned to an element. The memory must not be
    /// written as long as something computes with the tensor.</param>
    /// <param name="dtype">What the elements are.</param>
    /// <param name="shape">The sizes of the dimensions; empty: one element without dimensions.</param>
    /// <param name="strides">How many elements further the next position along each dimension is, none of them negative;
    /// null: the elements lie row by row.</param>
    /// <param name="owner">What owns the memory: it is kept from the garbage collector until no object of the library needs
    /// the memory. Null: the memory outlives its use in the library.</param>
    /// <returns>A new tensor.</returns>
    /// <exception cref="ArgumentException">Shape, strides or alignment do not fit.</exception>
    public static Tensor Wrap(IntPtr data, DType dtype, long[] shape, long[]? strides = null, object? owner = null)
    {
        ArgumentNullException.ThrowIfNull(shape);
        nuint size = Extent(shape, strides) * (nuint)(((int)dtype >> 8) / 8);
        GCHandle payload = GCHandle.Alloc(owner);
        try
        {
            AddendNative.addend_tensor_wrap(
                data,
                size,
                (int)dtype,
                shape,
                (nuint)shape.Length,
                strides!, // null: contiguous
                (nuint)(strides?.Length ?? 0),
                Callbacks.Release,
                GCHandle.ToIntPtr(payload),
                out TensorHandle handle);
            return new Tensor(handle);
        }
        catch
        {
            payload.Free();
            throw;
        }
    }

    /// <summary>Takes over a DLPack tensor of another native library in this process, without a copy.</summary>
    /// <param name="managed">The address of a <c>DLManagedTensor</c>, whose deleter is called once nothing needs the memory.
    /// After an exception the struct stays the caller's.</param>
    /// <param name="versioned">Whether it is a <c>DLManagedTensorVersioned</c>.</param>
    /// <returns>A new tensor on the same memory.</returns>
    /// <exception cref="NotSupportedException">LibTorch has no such device or dtype.</exception>
    public static Tensor FromDlpack(IntPtr managed, bool versioned = false)
    {
        AddendNative.addend_tensor_from_dlpack(managed, versioned ? 1 : 0, out TensorHandle handle);
        return new Tensor(handle);
    }

    /// <summary>Gives the tensor to another native library in this process, without a copy. The memory must not be
    /// written.</summary>
    /// <param name="versioned">Whether to give a <c>DLManagedTensorVersioned</c>; the older struct has no bool, which
    /// becomes uint8.</param>
    /// <returns>The address of a new <c>DLManagedTensor</c>, whose deleter the other library calls once.</returns>
    public IntPtr ToDlpack(bool versioned = false)
    {
        AddendNative.addend_tensor_to_dlpack(Handle, versioned ? 1u : 0u, out IntPtr managed, out int _);
        return managed;
    }

    /// <summary>The tensor of another native library in this process that computes with the same LibTorch, without a copy:
    /// the same storage with its strides and device, and the same place in autograd's graph.</summary>
    /// <param name="atTensor">The address of an <c>at::Tensor</c>: TorchSharp's <c>Tensor.Handle</c>. What it refers to is
    /// shared.</param>
    /// <returns>A new tensor.</returns>
    /// <exception cref="InvalidOperationException">The process has loaded another LibTorch than the library was built
    /// for.</exception>
    /// <exception cref="NotSupportedException">The tensor is sparse or quantized.</exception>
    public static Tensor FromLibTorch(IntPtr atTensor)
    {
        AddendNative.addend_tensor_from_libtorch(atTensor, out TensorHandle handle);
        return new Tensor(handle);
    }

    /// <summary>Gives the tensor to such a library, without a copy. The memory must not be written.</summary>
    /// <returns>The address of a new <c>at::Tensor</c>, which a library takes over, as TorchSharp's
    /// <c>Tensor.UnsafeCreateTensor</c> does, or <see cref="ReleaseLibTorch"/> deletes.</returns>
    /// <exception cref="InvalidOperationException">The process has loaded another LibTorch than the library was built
    /// for.</exception>
    public IntPtr ToLibTorch()
    {
        AddendNative.addend_tensor_to_libtorch(Handle, out IntPtr atTensor);
        return atTensor;
    }

    /// <summary>Deletes what <see cref="ToLibTorch"/> gave, where nobody has taken it over.</summary>
    /// <param name="atTensor">The address; zero does nothing.</param>
    public static void ReleaseLibTorch(IntPtr atTensor) => AddendNative.addend_libtorch_tensor_release(atTensor);

    // How many elements lie from the first to the last. The library judges sizes and strides, so that nonsense is 0 here.
    private static nuint Extent(long[] shape, long[]? strides)
    {
        long contiguous = 1;
        long last = 0;
        for (int dim = 0; dim < shape.Length; dim++)
        {
            if (shape[dim] <= 0)
            {
                return 0;
            }
            contiguous = unchecked(contiguous * shape[dim]);
            last = unchecked(last + (shape[dim] - 1) * (dim < strides?.Length ? strides[dim] : 0));
        }
        return (nuint)(strides is null ? contiguous : last + 1);
    }
}
