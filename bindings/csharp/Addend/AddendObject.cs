using System.Runtime.InteropServices;

namespace Addend;

/// <summary>
/// Something that holds memory of the native library. Dispose it, directly or through a <see cref="Scope"/>; what is
/// forgotten is released after the garbage collector finds it. Used after it was disposed, it throws
/// <see cref="ObjectDisposedException"/>. Objects may be disposed in any order and on any thread.
/// </summary>
public abstract class AddendObject : IDisposable
{
    private SafeHandle _handle;

    private protected AddendObject(SafeHandle handle)
    {
        _handle = handle;
        Scope.Current?.Add(this);
    }

    /// <summary>The scope that disposes it, if there is one.</summary>
    internal Scope? Scope { get; set; }

    private protected SafeHandle OwnedHandle => _handle;

    /// <summary>Releases what it holds; a second time does nothing.</summary>
    public void Dispose()
    {
        _handle.Dispose();
        Scope?.Remove(this);
        GC.SuppressFinalize(this);
    }

    private protected void ReplaceHandle(SafeHandle handle) => Interlocked.Exchange(ref _handle, handle).Dispose();
}
