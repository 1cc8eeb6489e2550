using System.Text.Json;
using Addend.Native;

namespace Addend;

/// <summary>
/// Some numbers, and what each element of the inputs gave to them.
/// <code>
/// var request = new Request(new Input(image) { Split = Split.Along(2, 3), Baseline = 0.0 }) { Targets = ["8", "8-3"] };
/// using Attribution attribution = model.Attribute(request);
/// using Tensor pixels = attribution.Input();
/// </code>
/// </summary>
public sealed class Attribution : AddendObject
{
    private readonly IReadOnlyList<string> _inputNames;
    private readonly string[] _insideSelectors;
    private IReadOnlyList<AttributedOperator>? _operators;

    internal Attribution(AttributionHandle handle, IReadOnlyList<string> inputNames, string[] insideSelectors)
        : base(handle)
    {
        _inputNames = inputNames;
        _insideSelectors = insideSelectors;
    }

    /// <summary>How many numbers are explained: the targets of the request, or the examples.</summary>
    public int Count => checked((int)AddendNative.addend_attribution_num_targets(Handle));

    /// <summary>The relevance that passed through each operator; empty unless the request asked for it. It is read
    /// once.</summary>
    public IReadOnlyList<AttributedOperator> Operators => _operators ??= ReadOperators();

    internal AttributionHandle Handle => (AttributionHandle)OwnedHandle;

    /// <summary>One of the numbers, by component.</summary>
    /// <param name="target">Its position.</param>
    /// <returns>The number and what it is made of.</returns>
    /// <exception cref="ArgumentOutOfRangeException">There is no such target.</exception>
    public Explanation Explain(int target = 0)
    {
        ArgumentOutOfRangeException.ThrowIfNegative(target);
        AddendNative.addend_attribution_explain(Handle, (nuint)target, out ExplanationHandle handle);
        return Explanation.Take(handle);
    }

    /// <summary>The notes of the run's report, one line each: what a reader has to know of it.</summary>
    public IReadOnlyList<string> Notes
    {
        get
        {
            using Results results = ToResults();
            return results.Notes;
        }
    }

    /// <summary>The notes that say that numbers may not mean what a reader takes them for.</summary>
    public IReadOnlyList<string> Warnings
    {
        get
        {
            using Results results = ToResults();
            return results.Warnings;
        }
    }

    /// <summary>The first explained numbers as sums, and the warnings, a line for each.</summary>
    public override string ToString()
    {
        const int shown = 10;
        List<string> lines = [.. Enumerable.Range(0, Math.Min(Count, shown)).Select(target => Explain(target).ToString())];
        if (Count > shown)
        {
            lines.Add($"and {Count - shown} more");
        }
        lines.AddRange(Warnings.Select(warning => "Warning: " + warning));
        return string.Join("\n", lines);
    }

    /// <summary>The explained tensor, then for each input what its elements give, nothing for plain ones, then the same for
    /// what is split inside the model; and the report of the run.</summary>
    /// <returns>New results.</returns>
    public Results ToResults()
    {
        AddendNative.addend_attribution_results(Handle, out ResultsHandle results);
        return new Results(results);
    }

    /// <summary>The explained tensor, as the model computed it.</summary>
    /// <returns>A new tensor on the same memory.</returns>
    public Tensor Value() => TensorAt(0);

    /// <summary>The contributions of an input, element by element.</summary>
    /// <param name="index">The input's position among the model's arguments.</param>
    /// <returns>[targets, *shape], or [*shape] where each example has a target; for ids one number each.</returns>
    /// <exception cref="ArgumentOutOfRangeException">There is no such input.</exception>
    /// <exception cref="ArgumentException">The input is plain.</exception>
    public Tensor Input(int index = 0)
    {
        ArgumentOutOfRangeException.ThrowIfNegative(index);
        using Results results = ToResults();
        ArgumentOutOfRangeException.ThrowIfGreaterThanOrEqual(index, results.Count - 1 - _insideSelectors.Length);
        return results.Tensor(index + 1);
    }

    /// <summary>The contributions of an input, element by element.</summary>
    /// <param name="name">One of the <see cref="Model.InputNames"/>; the path of a nested one, as <c>masks.keep</c>, or
    /// <c>1.keep</c> where arguments have no name.</param>
    /// <returns>[targets, *shape], or [*shape] where each example has a target; for ids one number each.</returns>
    /// <exception cref="KeyNotFoundException">There is no such input.</exception>
    /// <exception cref="ArgumentException">The input is plain.</exception>
    public Tensor Input(string name)
    {
        ArgumentNullException.ThrowIfNull(name);
        for (int index = 0; index < _inputNames.Count; index++)
        {
            if (_inputNames[index] == name)
            {
                return Input(index);
            }
        }
        throw new KeyNotFoundException($"no input is named {name}; there are: {string.Join(", ", _inputNames)}");
    }

    /// <summary>The contributions of a tensor inside the model, element by element.</summary>
    /// <param name="index">Its position in <see cref="Request.Inside"/>.</param>
    /// <returns>[targets, *shape], or [*shape] where each example has a target.</returns>
    /// <exception cref="ArgumentOutOfRangeException">There is no such tensor.</exception>
    public Tensor Inside(int index = 0)
    {
        ArgumentOutOfRangeException.ThrowIfNegative(index);
        ArgumentOutOfRangeException.ThrowIfGreaterThanOrEqual(index, _insideSelectors.Length);
        using Results results = ToResults();
        return results.Tensor(results.Count - _insideSelectors.Length + index);
    }

    /// <summary>The contributions of a tensor inside the model, element by element.</summary>
    /// <param name="selector">As it was given to the <see cref="Addend.Inside"/>.</param>
    /// <returns>[targets, *shape], or [*shape] where each example has a target.</returns>
    /// <exception cref="KeyNotFoundException">Nothing was split there.</exception>
    public Tensor Inside(string selector)
    {
        ArgumentNullException.ThrowIfNull(selector);
        int index = Array.IndexOf(_insideSelectors, selector);
        return index >= 0
            ? Inside(index)
            : throw new KeyNotFoundException(
                $"nothing was split at {selector}, but at: {string.Join(", ", _insideSelectors)}");
    }

    /// <summary>For each target, or for each example, the concepts that moved it the way that they describe, the largest
    /// first.</summary>
    /// <param name="concepts">What people are told of.</param>
    /// <returns>The reasons of all.</returns>
    /// <exception cref="ArgumentException">A concept names no component, two claim one, or a text asks for a value that is
    /// no number of an input.</exception>
    public Reasons Reasons(Concepts concepts)
    {
        ArgumentNullException.ThrowIfNull(concepts);
        return new Reasons(Text.Of(Handle, concepts.Handle, AddendNative.addend_attribution_reasons));
    }

    /// <summary>All of it as a JSON object.</summary>
    /// <returns>The text.</returns>
    public string ToJson() => Text.Of(Handle, AddendNative.addend_attribution_json);

    /// <summary>All of it as a page for a browser, which needs nothing else.</summary>
    /// <returns>The text.</returns>
    public string ToHtml() => Text.Of(Handle, AddendNative.addend_attribution_html);

    private IReadOnlyList<AttributedOperator> ReadOperators()
    {
        using JsonDocument document = JsonDocument.Parse(ToJson());
        return document.RootElement.All("operators", AttributedOperator.Read);
    }

    private Tensor TensorAt(int index)
    {
        using Results results = ToResults();
        return results.Tensor(index);
    }
}

public sealed partial record AttributedOperator
{
    /// <summary>Name and place: <c>aten::linear in encoder.fc1</c>.</summary>
    public override string ToString() => Module.Length == 0 ? Op : $"{Op} in {Module}";
}
