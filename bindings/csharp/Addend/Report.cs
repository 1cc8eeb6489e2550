using System.Globalization;
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

    /// <summary>Counts and errors in one line, then a line for each warning.</summary>
    public override string ToString() => string.Join("\n", Warnings.Select(warning => "Warning: " + warning).Prepend(
        string.Create(
            CultureInfo.InvariantCulture,
            $"{Operators} operators, worst recovery error {WorstRecoveryError:G2}, conditioning {Conditioning:G3}, "
            + $"leftover share {LeftoverShare:G2}, {Failures} failures")));

    internal static Report Of(ResultsHandle results)
    {
        string json = Text.Of(results, AddendNative.addend_results_report); // throws where nothing was decomposed
        return Read(results) with { Json = json };
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
