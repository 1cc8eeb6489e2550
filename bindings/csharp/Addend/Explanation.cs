using System.Globalization;
using Addend.Native;

namespace Addend;

/// <summary>The contribution of one component to an explained number.</summary>
/// <param name="Component">The component's position on the axis that all inputs share.</param>
/// <param name="Name">The component's name: a word, a pixel, a column.</param>
/// <param name="Value">What it adds.</param>
public sealed record Contribution(long Component, string Name, double Value)
{
    /// <summary>Name and value in one line.</summary>
    public override string ToString() => string.Create(CultureInfo.InvariantCulture, $"{Name}: {Value:G6}");
}

/// <summary>One number of a composition and what it is made of: plain data, with nothing to dispose. Contributions +
/// reference + leftover = recovery, which is the value up to rounding.</summary>
/// <param name="Target">The element that is explained: <c>[0, 7]</c>; <c>[0, 7] minus [0, 2]</c> for a difference.</param>
/// <param name="Contributions">What each component adds, in the order of the components.</param>
/// <param name="Ranking">The same, the largest magnitude first.</param>
/// <param name="Value">What the model computed.</param>
/// <param name="Reference">What it computes on the baseline.</param>
/// <param name="Leftover">What the policy could not attribute.</param>
/// <param name="Recovery">The sum of contributions, reference and leftover.</param>
/// <param name="RecoveryError">Recovery - value.</param>
/// <param name="Conditioning">The larger of sum |c| + |leftover| and |reference|, over the smaller of |value| and
/// |value - reference|: 1 where nothing cancels.</param>
/// <param name="Mass">sum |c| + |leftover| + |reference|: what rounding is measured against.</param>
public sealed record Explanation(
    string Target,
    IReadOnlyList<Contribution> Contributions,
    IReadOnlyList<Contribution> Ranking,
    double Value,
    double Reference,
    double Leftover,
    double Recovery,
    double RecoveryError,
    double Conditioning,
    double Mass)
{
    // The explanation that Addend computed, null if this one was made otherwise; the garbage collector releases it.
    private ExplanationHandle? _handle;

    /// <summary>How many baselines the numbers are means over.</summary>
    public long NumBaselines { get; private init; } = 1;

    /// <summary>The standard errors of the contributions, which are means over several baselines; NaN where there was one,
    /// nothing where Addend did not make this explanation.</summary>
    public IReadOnlyList<double> StandardErrors { get; private init; } = [];

    /// <summary>The share of baselines under which a contribution has the sign of their mean; NaN where there was one, nothing
    /// where Addend did not make this explanation.</summary>
    public IReadOnlyList<double> SameSign { get; private init; } = [];

    /// <summary>The largest contributions, the largest magnitude first.</summary>
    /// <param name="count">How many.</param>
    /// <returns>That many, or all if there are fewer.</returns>
    public IEnumerable<Contribution> Top(int count) => Ranking.Take(count);

    /// <summary>The concepts that moved it the way that they describe, the largest first, as one decision.</summary>
    /// <param name="concepts">What people are told of.</param>
    /// <returns>Its reasons.</returns>
    /// <exception cref="ArgumentException">A concept names no component, two claim one, or a text asks for a value that is
    /// no number of an input.</exception>
    /// <exception cref="InvalidOperationException">Addend did not make this explanation.</exception>
    public Reasons Reasons(Concepts concepts)
    {
        ArgumentNullException.ThrowIfNull(concepts);
        return new Reasons(Text.Of(Handle, concepts.Handle, AddendNative.addend_explanation_reasons));
    }

    /// <summary>All of it as a JSON object.</summary>
    /// <returns>The text.</returns>
    /// <exception cref="InvalidOperationException">Addend did not make this explanation.</exception>
    public string ToJson() => Text.Of(Handle, AddendNative.addend_explanation_json);

    /// <summary>All of it as a page for a browser, which needs nothing else.</summary>
    /// <returns>The text.</returns>
    /// <exception cref="InvalidOperationException">Addend did not make this explanation.</exception>
    public string ToHtml() => Text.Of(Handle, AddendNative.addend_explanation_html);

    /// <summary>A picture in SVG for reports and e-mails: the way from the reference to the value, a bar for each of the
    /// largest contributions, one for the others, and all notes.</summary>
    /// <returns>The text.</returns>
    /// <exception cref="InvalidOperationException">Addend did not make this explanation, or a number is not finite.</exception>
    public string ToSvg() => Text.Of(Handle, AddendNative.addend_explanation_svg);

    /// <summary>The explained number as a sum, in one line.</summary>
    public override string ToString() => string.Create(
        CultureInfo.InvariantCulture,
        $"{Target}: value {Value:G6} = reference {Reference:G6} + {Contributions.Count} contributions "
        + $"{Recovery - Reference - Leftover:G6} + leftover {Leftover:G6}");

    /// <summary>Reads it, and owns it.</summary>
    internal static Explanation Take(ExplanationHandle handle)
    {
        var contributions = new Contribution[checked((int)AddendNative.addend_explanation_numc(handle))];
        for (int component = 0; component < contributions.Length; component++)
        {
            long position = component;
            contributions[component] = new Contribution(
                component,
                Text.Borrowed(handle, explanation => AddendNative.addend_explanation_name(explanation, position)) ?? "",
                AddendNative.addend_explanation_contribution(handle, component));
        }
        var ranking = new Contribution[contributions.Length];
        for (int rank = 0; rank < ranking.Length; rank++)
        {
            ranking[rank] = contributions[AddendNative.addend_explanation_ranked(handle, rank)];
        }
        return new Explanation(
            Text.Borrowed(handle, AddendNative.addend_explanation_target) ?? "",
            contributions,
            ranking,
            Value: Number(handle, AddendNative.ADDEND_NUMBER_VALUE),
            Reference: Number(handle, AddendNative.ADDEND_NUMBER_REFERENCE),
            Leftover: Number(handle, AddendNative.ADDEND_NUMBER_LEFTOVER),
            Recovery: Number(handle, AddendNative.ADDEND_NUMBER_RECOVERY),
            RecoveryError: Number(handle, AddendNative.ADDEND_NUMBER_RECOVERY_ERROR),
            Conditioning: Number(handle, AddendNative.ADDEND_NUMBER_CONDITIONING),
            Mass: Number(handle, AddendNative.ADDEND_NUMBER_MASS))
        {
            _handle = handle,
            NumBaselines = AddendNative.addend_explanation_num_baselines(handle),
            StandardErrors = ByComponent(handle, contributions.Length, AddendNative.addend_explanation_standard_error),
            SameSign = ByComponent(handle, contributions.Length, AddendNative.addend_explanation_same_sign),
        };
    }

    private ExplanationHandle Handle =>
        _handle ?? throw new InvalidOperationException("Addend did not make this explanation: it has no page");

    private static double[] ByComponent(
        ExplanationHandle handle, int count, Func<ExplanationHandle, long, double> number) =>
        [.. Enumerable.Range(0, count).Select(component => number(handle, component))];

    private static double Number(ExplanationHandle handle, int number) =>
        AddendNative.addend_explanation_number(handle, number);
}
