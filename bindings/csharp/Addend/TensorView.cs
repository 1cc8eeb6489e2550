using Addend.Native;

namespace Addend;

/// <summary>The elements of a tensor where they are. It keeps their memory until it is disposed, so a
/// <c>using</c> around it is all that reading without a copy takes.</summary>
/// <typeparam name="T">The .NET type of the elements.</typeparam>
public readonly ref struct TensorView<T>
    where T : unmanaged
{
    private readonly TensorHandle _handle;
    private readonly int _count;

    internal TensorView(TensorHandle handle, int count)
    {
        _handle = handle;
        _count = count;
    }

    /// <summary>The elements, row by row. They must not be looked at after the view is disposed.</summary>
    public unsafe ReadOnlySpan<T> Span => new((void*)AddendNative.addend_tensor_data(_handle), _count);

    /// <summary>Gives the memory back.</summary>
    public void Dispose() => _handle?.Dispose();
}
