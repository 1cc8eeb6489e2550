namespace Addend.Native;

/// <summary>Runs something of the library that a token, or the end of the process, may end.</summary>
internal static class Cancellation
{
    internal static T Run<T>(Func<CancellationHandle, T> run, CancellationToken token)
    {
        token.ThrowIfCancellationRequested();
        AddendNative.addend_cancellation_create(out CancellationHandle cancellation);
        using (cancellation)
        {
            // Ends before the handle does, and waits for a cancel that is under way.
            using CancellationTokenRegistration registration = token.UnsafeRegister(
                static handle => AddendNative.addend_cancellation_cancel((CancellationHandle)handle!), cancellation);
            ProcessExit.Add(cancellation);
            try
            {
                return run(cancellation);
            }
            catch (OperationCanceledException error) when (
                error.InnerException is AddendException && token.IsCancellationRequested)
            {
                // Whoever awaits a task tells its own cancellation by the token.
                throw new OperationCanceledException(error.Message, error.InnerException, token)
                {
                    Data = { [AddendException.CodeKey] = ErrorCode.Cancelled },
                };
            }
            finally
            {
                ProcessExit.Remove(cancellation);
            }
        }
    }
}
