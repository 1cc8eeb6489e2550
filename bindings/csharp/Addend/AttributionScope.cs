using Addend.Native;

namespace Addend;

/// <summary>
/// Records every operator that this thread calls until it ends, whoever calls it, and attributes the targets of a request:
/// what each element of the live inputs gave to them.
/// <code>
/// var request = new Request(new Input(x) { Split = Split.Along(-1) }) { Targets = ["0"] };
/// using var scope = new AttributionScope(request);
/// using Results h = Operators.Call("aten::tanh", x);
/// scope.AddOutput("h", h.Tensor());
/// using Attribution attribution = scope.End();
/// </code>
/// It belongs to the thread that begins it.
/// </summary>
public sealed class AttributionScope : LiveScope
{
    private readonly Request _request;

    /// <summary>Begins to record.</summary>
    /// <param name="request">The inputs are the live tensors, known by their memory: contiguous, each on memory of its own.
    /// The targets are elements of the first output that is named, unless <see cref="Request.At"/> says otherwise; probes
    /// are not looked at.</param>
    /// <param name="context">The policy; null: that of the defaults.</param>
    /// <exception cref="InvalidOperationException">This thread is traced already.</exception>
    public AttributionScope(Request request, Context? context = null)
        : base(AddendNative.addend_trace_begin_attribution, request, context) => _request = request;

    /// <summary>Stops recording and attributes the targets.</summary>
    /// <returns>An explanation for each target, and a tensor for each input.</returns>
    /// <exception cref="InvalidOperationException">The policy looks at all components together, or the request splits a
    /// tensor inside the model, which has to run again: see <see cref="LiveScope.RunAgain"/>.</exception>
    public Attribution End()
    {
        AddendNative.addend_trace_end_attribution(Handle, out AttributionHandle attribution);
        return new Attribution(
            Callbacks.Finished(attribution),
            _request.OwnNames,
            [.. _request.Inside.Select(inside => inside.Selector)]);
    }

    /// <summary>Stops recording and plans attributions for inputs of the same sizes.</summary>
    /// <returns>A plan, whose requests give the inputs in the order of this scope's request.</returns>
    /// <exception cref="InvalidOperationException">The model cannot be planned.</exception>
    public Plan EndPlan()
    {
        AddendNative.addend_trace_end_plan(Handle, out PlanHandle plan);
        return new Plan(Callbacks.Finished(plan), _request.OwnNames);
    }
}
