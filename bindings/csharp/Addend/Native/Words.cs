namespace Addend.Native;

/// <summary>The words of the C interface.</summary>
internal static class Words
{
    /// <summary>EveryOp: every_op.</summary>
    internal static string Snake(string name) => string.Concat(name.Select((letter, position) =>
        position > 0 && char.IsUpper(letter) && char.IsLower(name[position - 1])
            ? "_" + char.ToLowerInvariant(letter)
            : char.ToLowerInvariant(letter).ToString()));
}
