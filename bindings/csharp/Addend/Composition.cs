using Addend.Native;

namespace Addend;

/// <summary>
/// A tensor of shape S written as <see cref="Numc"/> components and a residual, each of shape S. It never changes, but
/// for the methods whose names end in <c>InPlace</c>, which put their result into this object: those need it for
/// themselves, everything else may be used by any number of threads at once.
/// </summary>
public sealed partial class Composition : AddendObject
{
    internal Composition(CompositionHandle handle)
        : base(handle)
    {
    }

    /// <summary>How many components it has.</summary>
    public long Numc => AddendNative.addend_composition_numc(Handle);

    /// <summary>The sizes of the dimensions of S.</summary>
    public IReadOnlyList<long> Shape
    {
        get
        {
            CompositionHandle handle = Handle;
            var shape = new long[checked((int)AddendNative.addend_composition_num_dims(handle))];
            for (int dim = 0; dim < shape.Length; dim++)
            {
                shape[dim] = AddendNative.addend_composition_size(handle, (nuint)dim);
            }
            return shape;
        }
    }

    /// <summary>The dtype of the value; the parts of half types are float32.</summary>
    public DType DType => (DType)AddendNative.addend_composition_dtype(Handle);

    /// <summary>The device of its parts: <c>cpu</c>, <c>cuda:0</c>.</summary>
    public string Device => Text.Borrowed(Handle, AddendNative.addend_composition_device) ?? "";

    internal CompositionHandle Handle => (CompositionHandle)OwnedHandle;

    /// <summary>From its parts.</summary>
    /// <param name="components">All components, [numc, *S].</param>
    /// <param name="reference">The reference, of shape S; null: zeros.</param>
    /// <param name="leftover">The leftover, of shape S; null: zeros.</param>
    /// <param name="inGraph">Whether <see cref="Grad"/> can follow what is computed from them.</param>
    /// <returns>A new composition.</returns>
    public static Composition FromParts(
        Tensor components, Tensor? reference = null, Tensor? leftover = null, bool inGraph = false)
    {
        ArgumentNullException.ThrowIfNull(components);
        AddendNative.addend_composition_from_tensors(
            components.Handle,
            HandleOf(reference),
            HandleOf(leftover),
            inGraph ? 1 : 0,
            out CompositionHandle handle);
        return new Composition(handle);
    }

    /// <summary>One component for each position along some dimensions of a value: there it is value - baseline,
    /// elsewhere zero.</summary>
    /// <param name="value">The value.</param>
    /// <param name="dims">The dimensions; negative ones count from the end, and without any the whole value is one
    /// component.</param>
    /// <param name="baseline">The baseline; null: zeros.</param>
    /// <param name="offset">The component of the first position.</param>
    /// <param name="numc">How many components; null: no more than needed.</param>
    /// <returns>A new composition.</returns>
    public static Composition Diagonal(
        Tensor value, Dims dims = default, Tensor? baseline = null, long offset = 0, long? numc = null)
    {
        ArgumentNullException.ThrowIfNull(value);
        AddendNative.addend_composition_diagonal(
            value.Handle,
            dims.Values,
            (nuint)dims.Values.Length,
            HandleOf(baseline),
            offset,
            numc ?? -1,
            out CompositionHandle handle);
        return new Composition(handle);
    }

    /// <summary>One component for each label.</summary>
    /// <param name="value">The value.</param>
    /// <param name="labels">Integers of the value's shape or of its leading dimensions; -1: no component.</param>
    /// <param name="baseline">The baseline; null: zeros.</param>
    /// <param name="numc">How many components; null: the largest label + 1.</param>
    /// <returns>A new composition.</returns>
    public static Composition FromLabels(Tensor value, Tensor labels, Tensor? baseline = null, long? numc = null)
    {
        ArgumentNullException.ThrowIfNull(value);
        ArgumentNullException.ThrowIfNull(labels);
        AddendNative.addend_composition_from_labels(
            value.Handle, labels.Handle, HandleOf(baseline), numc ?? -1, out CompositionHandle handle);
        return new Composition(handle);
    }

    /// <summary>All components, [numc, *S].</summary>
    /// <returns>A new tensor on the same memory.</returns>
    public Tensor Components() => Part(AddendNative.ADDEND_COMPONENTS);

    /// <summary>The value that the tensor has on the baseline.</summary>
    /// <returns>A new tensor on the same memory.</returns>
    public Tensor Reference() => Part(AddendNative.ADDEND_REFERENCE);

    /// <summary>The leftover: what the policy could not attribute.</summary>
    /// <returns>A new tensor on the same memory.</returns>
    public Tensor Leftover() => Part(AddendNative.ADDEND_LEFTOVER);

    /// <summary>Reference + leftover.</summary>
    /// <returns>A new tensor.</returns>
    public Tensor Residual() => Part(AddendNative.ADDEND_RESIDUAL);

    /// <summary>The sum of components and residual.</summary>
    /// <returns>A new tensor.</returns>
    public Tensor Recovery() => Part(AddendNative.ADDEND_RECOVERY);

    /// <summary>The value that an operator or a model computed; without one, the recovery.</summary>
    /// <returns>A new tensor.</returns>
    public Tensor Value() => Part(AddendNative.ADDEND_VALUE);

    /// <summary>One component.</summary>
    /// <param name="index">Which, from 0.</param>
    /// <returns>A new tensor of shape S on the same memory.</returns>
    /// <exception cref="ArgumentOutOfRangeException">There is no such component.</exception>
    public Tensor Component(long index)
    {
        AddendNative.addend_composition_component(Handle, index, out TensorHandle handle);
        return new Tensor(handle);
    }

    /// <summary>Some of the components.</summary>
    /// <param name="indices">Which; negative ones count from the end.</param>
    /// <param name="withResidual">Whether the residual comes along, as it does by default; else it is zero.</param>
    /// <returns>A new composition.</returns>
    /// <exception cref="ArgumentException">There is no such component.</exception>
    public Composition SelectComponents(Dims indices, bool withResidual = true)
    {
        AddendNative.addend_composition_select(
            Handle, indices.Values, (nuint)indices.Values.Length, withResidual ? 1 : 0, out CompositionHandle handle);
        return new Composition(handle);
    }

    /// <summary>The gradient of sum(cotangent * this), summed over components, reference and leftover, with respect to
    /// the parts of an input. The cotangent comes first, then the input, while <c>grad</c> in Java and Python takes the
    /// input first. Both are compositions, so that the compiler notices no exchange: names tell them apart,
    /// <c>y.Grad(cotangent: weights, input: x)</c>.</summary>
    /// <param name="cotangent">First: a composition of the shape of this one.</param>
    /// <param name="input">Second: a composition made with <c>inGraph</c>, from which this one was computed.</param>
    /// <returns>A composition of the shape of the input.</returns>
    /// <exception cref="InvalidOperationException">No gradient connects the two.</exception>
    public Composition Grad(Composition cotangent, Composition input)
    {
        ArgumentNullException.ThrowIfNull(cotangent);
        ArgumentNullException.ThrowIfNull(input);
        AddendNative.addend_composition_grad(Handle, cotangent.Handle, input.Handle, out CompositionHandle handle);
        return new Composition(handle);
    }

    /// <summary>Explains one number of it. Components have the names of the run that gave it, else their
    /// positions.</summary>
    /// <param name="target">Which number.</param>
    /// <returns>The number and what it is made of.</returns>
    public Explanation Explain(Target target = default)
    {
        AddendNative.addend_composition_explain(Handle, target.Text, out ExplanationHandle handle);
        return Explanation.Take(handle);
    }

    /// <summary>Its components and its residual, as PyTorch prints tensors.</summary>
    /// <returns>Several lines.</returns>
    public override string ToString() => Text.Of(Handle, AddendNative.addend_composition_to_string);

    private static TensorHandle HandleOf(Tensor? tensor) => tensor is null ? TensorHandle.Null : tensor.Handle;

    private Tensor Part(int part)
    {
        AddendNative.addend_composition_part(Handle, part, out TensorHandle handle);
        return new Tensor(handle);
    }

    private static Composition CallOne(Context? context, string op, ReadOnlySpan<Argument> arguments)
    {
        using Results results = Operators.Run(context, op, arguments);
        return results.Composition(0);
    }

    private static Composition[] CallMany(Context? context, string op, ReadOnlySpan<Argument> arguments)
    {
        using Results results = Operators.Run(context, op, arguments);
        var compositions = new Composition[results.Count];
        for (int index = 0; index < compositions.Length; index++)
        {
            compositions[index] = results.Composition(index);
        }
        return compositions;
    }

    private static Tensor CallTensor(Context? context, string op, ReadOnlySpan<Argument> arguments)
    {
        using Results results = Operators.Run(context, op, arguments);
        return results.Tensor(0);
    }

    private static (Composition Values, Tensor Indices) CallPair(
        Context? context, string op, ReadOnlySpan<Argument> arguments)
    {
        using Results results = Operators.Run(context, op, arguments);
        return (results.Composition(0), results.Tensor(1));
    }

    private Composition CallInPlace(Context? context, string op, ReadOnlySpan<Argument> arguments)
    {
        using Results results = Operators.Run(context, op, arguments);
        ReplaceHandle(results.CompositionHandle(0));
        return this;
    }
}
