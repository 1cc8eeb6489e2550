using Addend.Native;

namespace Addend;

/// <summary>
/// A question to a model.
/// <code>
/// var request = new Request(new Input(tokens) { Split = Split.Along(-1) }) { Probes = ["layers.0.attention"] };
/// </code>
/// </summary>
public sealed partial record Request
{
    private readonly KeyValuePair<string?, Input>[] _inputs;
    private readonly string? _structure; // null: the inputs are the arguments

    /// <summary>Asks about inputs in the order of the model's arguments.</summary>
    /// <param name="inputs">The inputs.</param>
    public Request(params Input[] inputs)
    {
        ArgumentNullException.ThrowIfNull(inputs);
        _inputs = Array.ConvertAll(inputs, input => KeyValuePair.Create<string?, Input>(null, Given(input)));
    }

    /// <summary>Asks about inputs by the names of the model's arguments. Components are numbered in the order of the
    /// arguments, whatever the order of the dictionary.</summary>
    /// <param name="inputs">The inputs.</param>
    public Request(IReadOnlyDictionary<string, Input> inputs)
    {
        ArgumentNullException.ThrowIfNull(inputs);
        _inputs = [.. inputs.Select(i => KeyValuePair.Create<string?, Input>(Text.Checked(i.Key, "name"), Given(i.Value)))];
    }

    private Request(Structure structure)
    {
        _inputs = [.. structure.Inputs];
        _structure = structure.Json;
    }

    /// <summary>Further examples of what the model takes, whose inputs are taken: of other sizes to learn from, for
    /// <see cref="Model.Record(Request, CancellationToken)"/>, or of other values to try, for
    /// <see cref="Model.CheckTrace"/>. Nothing else takes several.</summary>
    public IReadOnlyList<Request> Others { get; init; } = [];

    /// <summary>Tensors inside the model at which components begin, in place of the inputs, which are plain then. They
    /// take one more run of the model: <see cref="LiveScope.RunAgain"/> in scopes. Looked at by
    /// <see cref="Model.Decompose(Addend.Request, Context?, CancellationToken)"/>,
    /// <see cref="Model.Attribute(Request, Context?, CancellationToken)"/>, <see cref="TracingScope"/> and
    /// <see cref="AttributionScope"/>.</summary>
    public IReadOnlyList<Inside> Inside { get; init; } = [];

    /// <summary>The numbers that <see cref="Model.Attribute(Request, Context?, CancellationToken)"/> explains; the largest
    /// element where there is none.</summary>
    public IReadOnlyList<Target> Targets { get; init; } = [];

    /// <summary>Inner tensors whose compositions are wanted: <c>layers.0.attention</c> (what left a
    /// module), <c>encoder@1</c> (the same of one of several calls), <c>attention:1</c> (one of several tensors that left
    /// it), <c>encoder@*</c> and <c>attention:*</c> (all of them, each a result of its own), <c>#28</c> (an operator by its
    /// number), <c>#28:1</c> (one of its tensors), <c>aten::gelu</c> or <c>aten::gelu:2</c> (an operator by its name),
    /// <c>logits</c> (what the last softmax or sigmoid reads).</summary>
    public IReadOnlyList<string> Probes { get; init; } = [];

    /// <summary>Those of the model's results that count: <c>output</c>, <c>output.1</c>, <c>output.logits</c> of a
    /// dictionary; all where none is named. They are decomposed; attributions and plans explain the first of them, unless
    /// another tensor is named.</summary>
    public IReadOnlyList<string> Outputs { get; init; } = [];

    /// <summary>Parameters by name of what runs in a <see cref="TracingScope"/>, an <see cref="AttributionScope"/> or a
    /// <see cref="RecordingScope"/>, so that reports name operators by what they read: the very tensors that operators are
    /// called with.</summary>
    public IReadOnlyDictionary<string, Tensor> Parameters { get; init; } = new Dictionary<string, Tensor>();

    /// <summary>Buffers by name, as for <see cref="Parameters"/>: tensors that are not learned.</summary>
    public IReadOnlyDictionary<string, Tensor> Buffers { get; init; } = new Dictionary<string, Tensor>();

    /// <summary>Asks about arguments of any kind, in the order of the model's: an <see cref="Input"/> or a
    /// <see cref="Tensor"/>, a number, bool, string or null, and a tuple, list or dictionary by strings of any of these. An
    /// int is an integer, a double is not; empty lists and dictionaries are taken for such of tensors.</summary>
    /// <param name="arguments">The arguments.</param>
    /// <returns>The request.</returns>
    public static Request OfArguments(params object?[] arguments)
    {
        ArgumentNullException.ThrowIfNull(arguments);
        return new Request(new Structure(arguments));
    }

    /// <inheritdoc cref="OfArguments(object?[])"/>
    /// <param name="arguments">The arguments by their names.</param>
    public static Request OfNamedArguments(IReadOnlyDictionary<string, object?> arguments)
    {
        ArgumentNullException.ThrowIfNull(arguments);
        return new Request(new Structure(arguments));
    }

    /// <summary>The names of inputs, which are their paths in the arguments; null if the inputs are the
    /// arguments.</summary>
    internal IReadOnlyList<string>? StructuredNames =>
        _structure is null ? null : Array.ConvertAll(_inputs, input => input.Key!);

    /// <summary>The names that the request itself gives its inputs; empty for those without a name.</summary>
    internal IReadOnlyList<string> OwnNames => Array.ConvertAll(_inputs, input => input.Key ?? "");

    internal RequestHandle Build(CancellationHandle cancellation)
    {
        AddendNative.addend_request_create(out RequestHandle request);
        try
        {
            AddInputs(request);
            foreach (Request other in Others)
            {
                ArgumentNullException.ThrowIfNull(other);
                AddendNative.addend_request_next_example(request);
                other.AddInputs(request);
            }
            foreach (Inside inside in Inside)
            {
                ArgumentNullException.ThrowIfNull(inside);
                AddendNative.addend_request_add_inside(request, Text.Checked(inside.Selector, nameof(inside.Selector)));
                Describe(request, inside.Split, inside.Baseline, inside.FirstComponent, inside.Names);
            }
            foreach (string probe in Probes)
            {
                AddendNative.addend_request_add_probe(request, Text.Checked(probe, nameof(Probes)));
            }
            foreach (string output in Outputs)
            {
                AddendNative.addend_request_add_output(request, Text.Checked(output, nameof(Outputs)));
            }
            foreach (Target target in Targets)
            {
                AddendNative.addend_request_add_target(request, target.Text);
            }
            foreach ((string key, string value) in AllOptions())
            {
                AddendNative.addend_request_set_option(request, key, Text.Checked(value, key));
            }
            foreach ((string name, Tensor tensor) in Parameters)
            {
                ArgumentNullException.ThrowIfNull(tensor);
                AddendNative.addend_request_add_parameter(request, Text.Checked(name, nameof(Parameters)), tensor.Handle);
            }
            foreach ((string name, Tensor tensor) in Buffers)
            {
                ArgumentNullException.ThrowIfNull(tensor);
                AddendNative.addend_request_add_buffer(request, Text.Checked(name, nameof(Buffers)), tensor.Handle);
            }
            AddendNative.addend_request_set_cancellation(request, cancellation);
            return request;
        }
        catch
        {
            request.Dispose();
            throw;
        }
    }

    private void AddInputs(RequestHandle request)
    {
        foreach ((string? name, Input input) in _inputs)
        {
            AddInput(request, name, input);
        }
        if (_structure is not null)
        {
            AddendNative.addend_request_set_structure(request, _structure);
        }
    }

    private static void AddInput(RequestHandle request, string? name, Input input)
    {
        AddendNative.addend_request_add_input(request, name!, input.Value.Handle);
        Describe(request, input.Split, input.Baseline, input.FirstComponent, input.Names);
    }

    // Sets the split, the baseline and the names of the input or inner tensor that was added last.
    private static void Describe(
        RequestHandle request, Split split, Baseline? baseline, long? firstComponent, IReadOnlyList<string> names)
    {
        split.AddTo(request);
        if (baseline is { Tensor: { } rows, IsSeveral: true })
        {
            AddendNative.addend_request_set_baselines(request, rows.Handle);
        }
        else if (baseline is { Tensor: { } tensor })
        {
            AddendNative.addend_request_set_baseline(request, tensor.Handle);
        }
        else if (baseline is { Word: { } word })
        {
            AddendNative.addend_request_set_baseline_word(request, Text.Checked(word, nameof(baseline)));
        }
        else if (baseline is { Number: double number })
        {
            AddendNative.addend_request_set_baseline_number(request, number);
        }
        if (firstComponent is { } first)
        {
            AddendNative.addend_request_set_first_component(request, first);
        }
        foreach (string component in names)
        {
            AddendNative.addend_request_add_name(request, Text.Checked(component, nameof(Addend.Input.Names)));
        }
    }

    private static Input Given(Input input)
    {
        ArgumentNullException.ThrowIfNull(input);
        ArgumentNullException.ThrowIfNull(input.Value);
        return input;
    }
}
