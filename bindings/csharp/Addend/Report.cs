using Addend.Native;

namespace Addend;

/// <summary>What a run says about itself.</summary>
public sealed record Report
{
    private Report()
    {
    }

    /// <summary>How many operators ran.</summary>
    public long Operators { get; private init; }

    /// <summary>How many of them the results depend on.</summary>
    public long Nodes { get; private init; }

    /// <summary>The largest difference between the sum of an operator's parts and its value, over the largest
    /// magnitude there, of all operators that were checked.</summary>
    public double WorstRecoveryError { get; private init; }

    /// <summary>The largest leftover that an operator made whose rule claims to leave nothing, over the largest
    /// magnitude there.</summary>
    public double WorstBracket { get; private init; }

    /// <summary>The magnitudes of all parts over the move that they sum to, of the result where that is the largest; 1
    /// where nothing cancels.</summary>
    public double Conditioning { get; private init; }

    /// <summary>The same of the leftover alone.</summary>
    public double LeftoverShare { get; private init; }

    /// <summary>Whether the reference is what the model computes on the baseline: "yes", "no", or "unknown" where the model
    /// reads a number that is another there.</summary>
    public required string ReferenceIsModelOnBaseline { get; init; }

    /// <summary>Why not; empty where it is.</summary>
    public required string ReferenceReason { get; init; }

    /// <summary>How far the reference is from what the model gives on the baseline, over the largest magnitude there; NaN
    /// unless <see cref="Request.VerifyReference"/> asked for it.</summary>
    public double ReferenceError { get; private init; }

    /// <summary>Whether components were found backward; see <see cref="Direction"/>.</summary>
    public bool Backward { get; private init; }

    /// <summary>How many tracing failures there were.</summary>
    public long Failures { get; private init; }

    /// <summary>How many operators put everything into the leftover.</summary>
    public long Absorbed { get; private init; }

    /// <summary>How many tracing failures were put into the leftover.</summary>
    public long AbsorbedFailures { get; private init; }

    /// <summary>How many operators without a rule got the path rule.</summary>
    public long PathRuled { get; private init; }

    /// <summary>How many references had to be stood in for, because they are not finite.</summary>
    public long StandInReferences { get; private init; }

    /// <summary>How many uses of integers carry no components.</summary>
    public long Unattributed { get; private init; }

    /// <summary>How long the model ran while it was traced.</summary>
    public TimeSpan Trace { get; private init; }

    /// <summary>How long coefficients took.</summary>
    public TimeSpan Linearize { get; private init; }

    /// <summary>How long components took.</summary>
    public TimeSpan Sweep { get; private init; }

    /// <summary>What a reader has to know, one line each.</summary>
    public required IReadOnlyList<string> Notes { get; init; }

    /// <summary>All of it as a JSON object: policy, counts, errors, notes, tracing failures, and every check, worst
    /// first.</summary>
    public required string Json { get; init; }

    internal static Report Of(ResultsHandle results)
    {
        AddendNative.addend_results_report(results, out StringHandle json);
        return new Report
        {
            Operators = Count(results, "operators"),
            Nodes = Count(results, "nodes"),
            WorstRecoveryError = AddendNative.addend_results_report_number(results, "worst_recovery_error"),
            WorstBracket = AddendNative.addend_results_report_number(results, "worst_bracket"),
            Conditioning = AddendNative.addend_results_report_number(results, "conditioning"),
            LeftoverShare = AddendNative.addend_results_report_number(results, "leftover_share"),
            ReferenceIsModelOnBaseline = TextOf(results, "reference_is_model_on_baseline"),
            ReferenceReason = TextOf(results, "reference_reason"),
            ReferenceError = AddendNative.addend_results_report_number(results, "reference_error"),
            Backward = Count(results, "backward") != 0,
            Failures = Count(results, "failures"),
            Absorbed = Count(results, "absorbed"),
            AbsorbedFailures = Count(results, "absorbed_failures"),
            PathRuled = Count(results, "path_ruled"),
            StandInReferences = Count(results, "stand_in_references"),
            Unattributed = Count(results, "unattributed"),
            Trace = Duration(results, "trace_seconds"),
            Linearize = Duration(results, "linearize_seconds"),
            Sweep = Duration(results, "sweep_seconds"),
            Notes = [.. AllNotes(results)],
            Json = Text.Taken(json),
        };
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

    private static IEnumerable<string> AllNotes(ResultsHandle results)
    {
        for (nuint index = 0; ; index++)
        {
            nuint position = index;
            if (Text.Borrowed(results, handle => AddendNative.addend_results_note(handle, position)) is not { } note)
            {
                yield break;
            }
            yield return note;
        }
    }
}
