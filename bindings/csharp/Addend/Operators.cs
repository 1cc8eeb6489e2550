using Addend.Native;

namespace Addend;

/// <summary>An operator that has a rule.</summary>
/// <param name="Name">Its name: <c>aten::softmax</c>.</param>
/// <param name="Kind">Which principle its rule follows: <c>path</c>.</param>
/// <param name="Schemas">The schemas that the rule serves in this LibTorch.</param>
public sealed record OperatorInfo(string Name, string Kind, IReadOnlyList<string> Schemas)
{
    /// <summary>Name and kind in one line.</summary>
    public override string ToString() => $"{Name} ({Kind})";
}

/// <summary>Operators by name, on compositions and tensors.</summary>
public static class Operators
{
    private static readonly Lazy<IReadOnlyList<OperatorInfo>> Listed = new(List);

    /// <summary>The operators that have a rule, in the order of their names.</summary>
    public static IReadOnlyList<OperatorInfo> All => Listed.Value;

    /// <summary>
    /// Calls an operator. Compositions may stand wherever its schema wants a tensor; without any the operator just runs.
    /// <code>
    /// using Results results = Operators.Call("aten::leaky_relu", x, Argument.Named("negative_slope", 0.2));
    /// </code>
    /// </summary>
    /// <param name="op">Its name: <c>aten::add.Tensor</c>, or <c>aten::add</c> where the arguments tell the
    /// overload.</param>
    /// <param name="arguments">Its arguments.</param>
    /// <returns>What it gives.</returns>
    /// <exception cref="KeyNotFoundException">There is no such operator.</exception>
    /// <exception cref="NotSupportedException">It has no rule.</exception>
    public static Results Call(string op, params Argument[] arguments) => Run(null, op, arguments);

    /// <summary>Calls an operator under a policy.</summary>
    /// <param name="context">The policy; null: that of the defaults.</param>
    /// <inheritdoc cref="Call(string, Argument[])"/>
    /// <param name="op"/>
    /// <param name="arguments"/>
    public static Results Call(Context? context, string op, params Argument[] arguments) => Run(context, op, arguments);

    /// <summary>The exact Shapley values of the components for the first result of a call: at most 16 components,
    /// 2^numc runs.</summary>
    /// <param name="op">The operator's name.</param>
    /// <param name="arguments">Its arguments.</param>
    /// <returns>A composition of that result.</returns>
    public static Composition Shapley(string op, params Argument[] arguments)
    {
        using ArgumentsHandle packed = Argument.Pack(arguments);
        AddendNative.addend_call_shapley(Text.Checked(op, nameof(op)), packed, out CompositionHandle handle);
        return new Composition(handle);
    }

    internal static Results Run(Context? context, string op, ReadOnlySpan<Argument> arguments)
    {
        Text.Checked(op, nameof(op));
        using ArgumentsHandle packed = Argument.Pack(arguments);
        Callbacks.Begin();
        AddendNative.addend_call(Context.HandleOf(context), op, packed, out ResultsHandle results);
        return new Results(Callbacks.Finished(results));
    }

    private static OperatorInfo[] List()
    {
        var operators = new OperatorInfo[checked((int)AddendNative.addend_op_count())];
        for (int index = 0; index < operators.Length; index++)
        {
            nuint position = (nuint)index;
            operators[index] = new OperatorInfo(
                Text.Static(AddendNative.addend_op_name(position)),
                Text.Static(AddendNative.addend_op_kind(position)),
                Text.Static(AddendNative.addend_op_schema(position)).Split('\n', StringSplitOptions.RemoveEmptyEntries));
        }
        return operators;
    }
}
