using Addend.Native;

namespace Addend;

/// <summary>
/// An attribution made ready for many rows: model, sizes, splits, baselines, targets and policy are fixed, and nothing is
/// looked up again. It gives what <see cref="Model.Attribute(Request, Context?, CancellationToken)"/> would give, bit for
/// bit, or refuses. Any number of threads may use one.
/// <code>
/// using Plan plan = model.Plan(request);
/// using Attribution attribution = plan.Attribute(row);
/// </code>
/// </summary>
public sealed class Plan : AddendObject
{
    private readonly IReadOnlyList<string> _inputNames;

    internal Plan(PlanHandle handle, IReadOnlyList<string> inputNames)
        : base(handle) => _inputNames = inputNames;

    internal PlanHandle Handle => (PlanHandle)OwnedHandle;

    /// <summary>Attributes the plan's targets for the inputs of a request.</summary>
    /// <param name="request">Its values are taken; how they are split is the plan's.</param>
    /// <param name="cancellationToken">Ends the run.</param>
    /// <returns>An explanation for each target, and a tensor for each input.</returns>
    /// <exception cref="ArgumentException">An input has another size or type, or is not finite.</exception>
    /// <exception cref="InvalidOperationException">The model would take another branch, or its parameters were
    /// written.</exception>
    /// <exception cref="OperationCanceledException">The run was ended.</exception>
    public Attribution Attribute(Request request, CancellationToken cancellationToken = default) =>
        Model.Ask(request, asked =>
        {
            AddendNative.addend_plan_attribute(Handle, asked, out AttributionHandle attribution);
            return new Attribution(attribution, _inputNames, []);
        }, cancellationToken);

    /// <inheritdoc cref="Attribute(Request, CancellationToken)"/>
    /// <param name="input">The only input; a tensor converts by itself.</param>
    /// <param name="cancellationToken"/>
    public Attribution Attribute(Input input, CancellationToken cancellationToken = default) =>
        Attribute(new Request(input), cancellationToken);

    /// <summary>Attributes as <see cref="Attribute(Request, CancellationToken)"/> does, into the caller's memory and without
    /// objects for the result.</summary>
    /// <param name="request">Its values are taken.</param>
    /// <param name="contributions">Doubles, contiguous, one for each target and component.</param>
    /// <param name="sums">Doubles, contiguous, which get value, reference and leftover of each target; null for none.</param>
    /// <param name="cancellationToken">Ends the run.</param>
    /// <exception cref="ArgumentException">As for attributions, or a tensor does not fit.</exception>
    /// <exception cref="InvalidOperationException">As for attributions.</exception>
    /// <exception cref="OperationCanceledException">The run was ended.</exception>
    public void AttributeInto(
        Request request, Tensor contributions, Tensor? sums = null, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(contributions);
        Model.Ask(request, asked =>
        {
            AddendNative.addend_plan_attribute_into(
                Handle, asked, contributions.Handle, sums is null ? TensorHandle.Null : sums.Handle);
            return true;
        }, cancellationToken);
    }
}
