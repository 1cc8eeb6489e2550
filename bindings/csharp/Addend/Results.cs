using System.Globalization;
using Addend.Native;

namespace Addend;

/// <summary>The kind of a result.</summary>
public enum ResultKind
{
    /// <summary>No result: an optional output that is not there.</summary>
    None = AddendNative.ADDEND_RESULT_NONE,

    /// <summary>A composition.</summary>
    Composition = AddendNative.ADDEND_RESULT_COMPOSITION,

    /// <summary>A plain tensor: integers, bools, and everything where no composition was given.</summary>
    Tensor = AddendNative.ADDEND_RESULT_TENSOR,

    /// <summary>A number.</summary>
    Number = AddendNative.ADDEND_RESULT_NUMBER,
}

/// <summary>The results of a run or a call, in order, with its report; those of a model are its outputs, then its
/// probes.</summary>
public sealed class Results : AddendObject
{
    private string?[]? _names;
    private Report? _report;

    internal Results(ResultsHandle handle)
        : base(handle)
    {
    }

    /// <summary>How many there are.</summary>
    public int Count => checked((int)AddendNative.addend_results_size(Handle));

    /// <summary>The names, in order: <c>output</c>, <c>output.1</c>, or <c>output.logits</c> of a dictionary, the
    /// selector of a probe; null where there is none.</summary>
    public IReadOnlyList<string?> Names => _names ??=
        Text.All(Handle, AddendNative.addend_results_size(Handle), AddendNative.addend_results_name);

    /// <summary>The report of the run. It is read once, and stays readable after that.</summary>
    public Report Report => _report ??= Report.Of(Handle);

    /// <summary>Everything that a reader has to know, one line each: the notes of the report; for a replay, which has
    /// no report, a note that random numbers were drawn anew.</summary>
    public IReadOnlyList<string> Notes => [.. Report.AllNotes(Handle)];

    /// <summary>The notes that say that numbers may not mean what a reader takes them for.</summary>
    public IReadOnlyList<string> Warnings => [.. Report.AllWarnings(Handle)];

    /// <summary>A line for each result: its name, its shape, and of a composition how many components it has. Then the
    /// warnings.</summary>
    public override string ToString()
    {
        List<string> lines = [.. Enumerable.Range(0, Count).Select(Line)];
        lines.AddRange(Warnings.Select(warning => "Warning: " + warning));
        return string.Join("\n", lines);
    }

    private ResultsHandle Handle => (ResultsHandle)OwnedHandle;

    /// <summary>The kind of a result.</summary>
    /// <param name="index">Its position.</param>
    /// <returns>Its kind; None where there is no such result.</returns>
    public ResultKind Kind(int index) => (ResultKind)AddendNative.addend_results_kind(Handle, Position(index));

    /// <summary>A composition by its position.</summary>
    /// <param name="index">The position.</param>
    /// <returns>A new composition on the same memory.</returns>
    /// <exception cref="ArgumentException">The result is of another kind.</exception>
    /// <exception cref="ArgumentOutOfRangeException">There is no such result.</exception>
    public Composition Composition(int index = 0) => new(CompositionHandle(index));

    /// <summary>A composition by its name.</summary>
    /// <param name="name">One of <see cref="Names"/>.</param>
    /// <returns>A new composition on the same memory.</returns>
    /// <exception cref="KeyNotFoundException">There is no such result.</exception>
    public Composition Composition(string name) => Composition(Find(name));

    /// <summary>A tensor by its position, or the value of the composition there.</summary>
    /// <param name="index">The position.</param>
    /// <returns>A new tensor on the same memory.</returns>
    /// <exception cref="ArgumentOutOfRangeException">There is no such result.</exception>
    public Tensor Tensor(int index = 0)
    {
        AddendNative.addend_results_tensor(Handle, Position(index), out TensorHandle handle);
        return new Tensor(handle);
    }

    /// <summary>A tensor by its name, or the value of the composition of that name.</summary>
    /// <param name="name">One of <see cref="Names"/>.</param>
    /// <returns>A new tensor on the same memory.</returns>
    /// <exception cref="KeyNotFoundException">There is no such result.</exception>
    public Tensor Tensor(string name) => Tensor(Find(name));

    /// <summary>A number by its position.</summary>
    /// <param name="index">The position.</param>
    /// <returns>The number.</returns>
    /// <exception cref="ArgumentOutOfRangeException">There is no such result.</exception>
    public double Number(int index = 0)
    {
        AddendNative.addend_results_number(Handle, Position(index), out double number);
        return number;
    }

    /// <summary>Explains one number of a composition among the results, with the names that the inputs gave to their
    /// components.</summary>
    /// <param name="target">Which number.</param>
    /// <param name="name">Which result; null: the first.</param>
    /// <returns>The number and what it is made of.</returns>
    /// <exception cref="KeyNotFoundException">There is no such result.</exception>
    public Explanation Explain(Target target = default, string? name = null)
    {
        AddendNative.addend_results_explain(
            Handle, name is null ? null! : Text.Checked(name, nameof(name)), target.Text, out ExplanationHandle handle);
        return Addend.Explanation.Take(handle);
    }

    internal CompositionHandle CompositionHandle(int index)
    {
        AddendNative.addend_results_composition(Handle, Position(index), out CompositionHandle handle);
        return handle;
    }

    private string Line(int index)
    {
        string name = Names[index] is { Length: > 0 } own ? own : index.ToString(CultureInfo.InvariantCulture);
        switch (Kind(index))
        {
            case ResultKind.Composition:
                using (Composition composition = Composition(index))
                {
                    return $"{name}: {composition.Numc} components of [{string.Join(", ", composition.Shape)}]";
                }
            case ResultKind.Tensor:
                using (Tensor tensor = Tensor(index))
                {
                    return $"{name}: [{string.Join(", ", tensor.Shape)}]";
                }
            case ResultKind.Number:
                return string.Create(CultureInfo.InvariantCulture, $"{name}: {Number(index):G6}");
            default:
                return $"{name}: none";
        }
    }

    private static nuint Position(int index)
    {
        ArgumentOutOfRangeException.ThrowIfNegative(index);
        return (nuint)index;
    }

    private int Find(string name)
    {
        ArgumentNullException.ThrowIfNull(name);
        IReadOnlyList<string?> names = Names;
        for (int index = 0; index < names.Count; index++)
        {
            if (names[index] == name)
            {
                return index;
            }
        }
        throw new KeyNotFoundException($"no result is named {name}; there are: {string.Join(", ", names)}");
    }
}
