using System.Runtime.InteropServices;
using Microsoft.Win32.SafeHandles;

namespace Addend.Native;

/// <summary>
/// A handle of the C interface. The runtime keeps it alive around every call that it is passed to, so neither a
/// finalizer nor another thread can release it under a call that still runs. Handles.cs, which is made of the list of
/// handles, has a class for each.
/// </summary>
internal abstract class NativeHandle() : SafeHandleZeroOrMinusOneIsInvalid(ownsHandle: true)
{
    private protected abstract void Release(IntPtr owned);

    protected sealed override bool ReleaseHandle()
    {
        Release(handle);
        return true;
    }
}
