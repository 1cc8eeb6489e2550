using System.Runtime.InteropServices;
using System.Text;

namespace Addend.Native;

/// <summary>Text on its way between the two sides; both use Unicode, C ends it with NUL.</summary>
internal static class Text
{
    private static readonly UTF8Encoding Strict = new(encoderShouldEmitUTF8Identifier: false, throwOnInvalidBytes: true);

    /// <summary>The text as it is, if C can hold it: P/Invoke would cut it at a NUL and replace lone surrogates, which
    /// would name something else than what the caller named.</summary>
    internal static string Checked(string text, string parameter)
    {
        ArgumentNullException.ThrowIfNull(text, parameter);
        int end = text.IndexOf('\0', StringComparison.Ordinal);
        if (end >= 0)
        {
            throw new ArgumentException($"{parameter} holds a NUL character at position {end}", parameter);
        }
        try
        {
            Strict.GetByteCount(text);
        }
        catch (EncoderFallbackException error)
        {
            throw new ArgumentException(
                $"{parameter} holds half of a surrogate pair at position {error.Index}", parameter, error);
        }
        return text;
    }

    /// <summary>Text that belongs to the library for ever.</summary>
    internal static string Static(IntPtr text) => Marshal.PtrToStringUTF8(text) ?? "";

    /// <summary>Text that lives as long as its owner, copied while the owner is held; null for NULL.</summary>
    internal static string? Borrowed<THandle>(THandle owner, Func<THandle, IntPtr> read)
        where THandle : SafeHandle
    {
        bool held = false;
        try
        {
            owner.DangerousAddRef(ref held);
            return Marshal.PtrToStringUTF8(read(owner));
        }
        finally
        {
            if (held)
            {
                owner.DangerousRelease();
            }
        }
    }

    /// <summary>The texts that a function tells of their owner by position; null where it tells none.</summary>
    internal static string?[] All<THandle>(THandle owner, nuint count, Func<THandle, nuint, IntPtr> read)
        where THandle : SafeHandle
    {
        var texts = new string?[checked((int)count)];
        for (int index = 0; index < texts.Length; index++)
        {
            nuint position = (nuint)index;
            texts[index] = Borrowed(owner, handle => read(handle, position));
        }
        return texts;
    }

    /// <summary>A function of the C interface that makes a text of something.</summary>
    internal delegate void Maker<in T>(T of, out StringHandle text);

    /// <summary>A function of the C interface that makes a text of two things.</summary>
    internal delegate void Maker<in T, in TOther>(T of, TOther other, out StringHandle text);

    /// <summary>The text that a function makes.</summary>
    internal static string Of<T>(T of, Maker<T> make)
    {
        make(of, out StringHandle text);
        return Taken(text);
    }

    /// <summary>The text that a function makes of two things.</summary>
    internal static string Of<T, TOther>(T of, TOther other, Maker<T, TOther> make)
    {
        make(of, other, out StringHandle text);
        return Taken(text);
    }

    /// <summary>Text that was computed for us: it is released here.</summary>
    internal static string Taken(StringHandle text) => Encoding.UTF8.GetString(TakenBytes(text));

    /// <summary>The bytes of a text that was computed for us: it is released here.</summary>
    internal static unsafe byte[] TakenBytes(StringHandle text)
    {
        using (text)
        {
            int size = checked((int)AddendNative.addend_string_size(text));
            return new ReadOnlySpan<byte>((void*)AddendNative.addend_string_data(text), size).ToArray();
        }
    }
}
