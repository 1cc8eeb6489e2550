namespace Addend;

/// <summary>Why a call failed: the canonical codes of gRPC.</summary>
public enum ErrorCode
{
    /// <summary>Success: the call did not fail.</summary>
    Ok = Native.AddendNative.ADDEND_OK,

    /// <summary>The caller ended the run.</summary>
    Cancelled = Native.AddendNative.ADDEND_CANCELLED,

    /// <summary>Nobody knows why.</summary>
    Unknown = Native.AddendNative.ADDEND_UNKNOWN,

    /// <summary>An argument is wrong.</summary>
    InvalidArgument = Native.AddendNative.ADDEND_INVALID_ARGUMENT,

    /// <summary>There is no such file, tensor, output or operator.</summary>
    NotFound = Native.AddendNative.ADDEND_NOT_FOUND,

    /// <summary>Memory ran out.</summary>
    ResourceExhausted = Native.AddendNative.ADDEND_RESOURCE_EXHAUSTED,

    /// <summary>The call is not possible in this state.</summary>
    FailedPrecondition = Native.AddendNative.ADDEND_FAILED_PRECONDITION,

    /// <summary>An index is out of range.</summary>
    OutOfRange = Native.AddendNative.ADDEND_OUT_OF_RANGE,

    /// <summary>An operator has no rule, or a model does what cannot be traced.</summary>
    Unimplemented = Native.AddendNative.ADDEND_UNIMPLEMENTED,

    /// <summary>A tracing failure, or an error in the library.</summary>
    Internal = Native.AddendNative.ADDEND_INTERNAL,
}

/// <summary>Position of an operator in a model.</summary>
/// <param name="Op">The operator: <c>aten::softmax</c>.</param>
public sealed record OperatorPosition(string Op)
{
    /// <summary>The number of the operator among those recorded.</summary>
    public long? Index { get; init; }

    /// <summary>The module that it is in: <c>encoder.layers.3</c>.</summary>
    public string? ModulePath { get; init; }

    /// <summary>The function of the model that called it.</summary>
    public string? Function { get; init; }

    /// <summary>The file in which it is called.</summary>
    public string? File { get; init; }

    /// <summary>The line in that file.</summary>
    public long? Line { get; init; }

    /// <summary>The parameters that it reads.</summary>
    public string? Parameters { get; init; }
}

/// <summary>
/// An error inside the library. Errors that .NET has an exception for are thrown as that, with this one as their
/// <see cref="Exception.InnerException"/>: <see cref="ArgumentException"/>, <see cref="ArgumentOutOfRangeException"/>,
/// <see cref="KeyNotFoundException"/>, <see cref="FileNotFoundException"/>, <see cref="NotSupportedException"/>,
/// <see cref="InvalidOperationException"/>, <see cref="OperationCanceledException"/>,
/// <see cref="InsufficientMemoryException"/>. Tracing failures and unknown errors are thrown as this one itself. All of
/// them have the code in their <see cref="Exception.Data"/> under <see cref="CodeKey"/>.
/// </summary>
public sealed class AddendException : Exception
{
    /// <summary>The key of the <see cref="ErrorCode"/> in <see cref="Exception.Data"/>.</summary>
    public const string CodeKey = "addend.code";

    internal AddendException(ErrorCode code, string message, string detail, OperatorPosition? position)
        : base(message)
    {
        Code = code;
        Detail = detail;
        Position = position;
        Data[CodeKey] = code;
    }

    /// <summary>Why the call failed.</summary>
    public ErrorCode Code { get; }

    /// <summary>Source location in the library's C++; empty unless <see cref="ContextOptions.Detail"/> asks for
    /// it.</summary>
    public string Detail { get; }

    /// <summary>The operator to blame, if it is one.</summary>
    public OperatorPosition? Position { get; }
}
