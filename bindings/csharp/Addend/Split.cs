using Addend.Native;

namespace Addend;

/// <summary>How an input is divided into components.</summary>
public abstract record Split
{
    private Split()
    {
    }

    /// <summary>Not at all: it has no components.</summary>
    public static Split None { get; } = new NotAtAll();

    /// <summary>One component for each position along some dimensions.</summary>
    /// <param name="dims">The dimensions; negative ones count from the end.</param>
    /// <returns>The split.</returns>
    public static Split Along(params long[] dims)
    {
        ArgumentNullException.ThrowIfNull(dims);
        return new Dimensions([.. dims]);
    }

    /// <summary>One component for each label: words, segments, super-pixels.</summary>
    /// <param name="labels">Integers of the input's shape or of its leading dimensions; -1: no component.</param>
    /// <returns>The split.</returns>
    public static Split Labels(Tensor labels)
    {
        ArgumentNullException.ThrowIfNull(labels);
        return new ByLabels(labels);
    }

    /// <summary>Components as given; the rest of the input is its reference.</summary>
    /// <param name="parts">The components, [numc, *shape].</param>
    /// <returns>The split.</returns>
    public static Split Parts(Tensor parts)
    {
        ArgumentNullException.ThrowIfNull(parts);
        return new Given(parts);
    }

    internal abstract void AddTo(RequestHandle request);

    private sealed record NotAtAll : Split
    {
        internal override void AddTo(RequestHandle request)
        {
        }
    }

    private sealed record Dimensions(long[] Dims) : Split
    {
        internal override void AddTo(RequestHandle request) =>
            AddendNative.addend_request_split_dims(request, Dims, (nuint)Dims.Length);
    }

    private sealed record ByLabels(Tensor Tensor) : Split
    {
        internal override void AddTo(RequestHandle request) =>
            AddendNative.addend_request_split_labels(request, Tensor.Handle);
    }

    private sealed record Given(Tensor Tensor) : Split
    {
        internal override void AddTo(RequestHandle request) =>
            AddendNative.addend_request_split_parts(request, Tensor.Handle);
    }
}
