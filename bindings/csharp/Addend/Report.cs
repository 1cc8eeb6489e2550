using Addend.Native;

namespace Addend;

public sealed partial record Report
{
    private Report()
    {
    }

    /// <summary>All of it as a JSON object: policy, counts, errors, notes, tracing failures, and every check, worst
    /// first.</summary>
    public string Json { get; private init; } = "";

    internal static Report Of(ResultsHandle results)
    {
        AddendNative.addend_results_report(results, out StringHandle json);
        return Read(results) with { Json = Text.Taken(json) };
    }

    private static long Count(ResultsHandle results, string key)
    {
        double number = AddendNative.addend_results_report_number(results, key);
        return double.IsNaN(number) ? 0 : (long)number;
    }

    private static string TextOf(ResultsHandle results, string key) =>
        Text.Borrowed(results, handle => AddendNative.addend_results_report_text(handle, key)) ?? string.Empty;

    private static TimeSpan Duration(ResultsHandle results, string key)
    {
        double seconds = AddendNative.addend_results_report_number(results, key);
        return double.IsNaN(seconds) ? TimeSpan.Zero : TimeSpan.FromSeconds(seconds);
    }

    internal static IEnumerable<string> AllNotes(ResultsHandle results) =>
        Lines(results, AddendNative.addend_results_note);

    internal static IEnumerable<string> AllWarnings(ResultsHandle results) =>
        Lines(results, AddendNative.addend_results_warning);

    private static IEnumerable<string> Lines(ResultsHandle results, Func<ResultsHandle, nuint, IntPtr> lineAt)
    {
        for (nuint index = 0; ; index++)
        {
            nuint position = index;
            if (Text.Borrowed(results, handle => lineAt(handle, position)) is not { } line)
            {
                yield break;
            }
            yield return line;
        }
    }
}
