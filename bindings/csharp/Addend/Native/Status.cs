using System.Globalization;
using System.Runtime.InteropServices;

namespace Addend.Native;

/// <summary>Makes exceptions of the statuses that functions of the C interface return.</summary>
internal static class Status
{
    /// <summary>Throws what a status says and releases it; NULL is success.</summary>
    internal static void Check(IntPtr status)
    {
        if (status == IntPtr.Zero)
        {
            return;
        }
        AddendException cause;
        try
        {
            cause = Read(status);
        }
        finally
        {
            addend_status_release(status);
        }
        // If a callback ended the run, rethrow its exception rather than the cancellation.
        if (cause.Code == ErrorCode.Cancelled)
        {
            Callbacks.TakePending()?.Throw();
        }
        throw ExceptionFor(cause);
    }

    private static AddendException Read(IntPtr status) => new(
        (ErrorCode)addend_status_code(status),
        Text.Static(addend_status_message(status)),
        Text.Static(addend_status_detail(status)),
        Position(status));

    private static OperatorPosition? Position(IntPtr status)
    {
        string? op = Payload(status, "op"u8);
        return op is null ? null : new OperatorPosition(op)
        {
            Index = Number(Payload(status, "op_index"u8)),
            ModulePath = Payload(status, "module_path"u8),
            Function = Payload(status, "function"u8),
            File = Payload(status, "file"u8),
            Line = Number(Payload(status, "line"u8)),
            Parameters = Payload(status, "parameters"u8),
        };
    }

    private static unsafe string? Payload(IntPtr status, ReadOnlySpan<byte> key)
    {
        fixed (byte* text = key)
        {
            return Marshal.PtrToStringUTF8(addend_status_payload(status, text));
        }
    }

    private static long? Number(string? text) =>
        long.TryParse(text, NumberStyles.Integer, CultureInfo.InvariantCulture, out long number) ? number : null;

    // Callers catch what .NET's own libraries throw for the same reason; the cause tells the rest.
    private static Exception ExceptionFor(AddendException cause)
    {
        Exception exception = cause.Code switch
        {
            ErrorCode.Cancelled => new OperationCanceledException(cause.Message, cause),
            ErrorCode.InvalidArgument => new ArgumentException(cause.Message, cause),
            ErrorCode.NotFound => new KeyNotFoundException(cause.Message, cause),
            ErrorCode.ResourceExhausted => new InsufficientMemoryException(cause.Message, cause),
            ErrorCode.FailedPrecondition => new InvalidOperationException(cause.Message, cause),
            ErrorCode.OutOfRange => new ArgumentOutOfRangeException(cause.Message, cause),
            ErrorCode.Unimplemented => new NotSupportedException(cause.Message, cause),
            _ => cause,
        };
        exception.Data[AddendException.CodeKey] = cause.Code;
        return exception;
    }

    [DllImport(Library.Core)]
    private static extern int addend_status_code(IntPtr status);

    [DllImport(Library.Core)]
    private static extern IntPtr addend_status_message(IntPtr status);

    [DllImport(Library.Core)]
    private static extern IntPtr addend_status_detail(IntPtr status);

    [DllImport(Library.Core)]
    private static extern unsafe IntPtr addend_status_payload(IntPtr status, byte* key);

    [DllImport(Library.Core)]
    private static extern void addend_status_release(IntPtr status);
}
