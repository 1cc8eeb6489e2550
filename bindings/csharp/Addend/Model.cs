using Addend.Native;

namespace Addend;

/// <summary>
/// A TorchScript model on the CPU, in evaluation mode. It never changes, and may be used by any number of threads at
/// once. A run blocks the thread that asks for it: where that matters, <c>Task.Run(() => model.Decompose(request,
/// cancellationToken: token), token)</c>.
/// </summary>
public sealed class Model : AddendObject
{
    private Model(ModelHandle handle)
        : base(handle)
    {
    }

    /// <summary>The names of the arguments that the model takes, in order.</summary>
    public IReadOnlyList<string> InputNames
    {
        get
        {
            var names = new string[checked((int)AddendNative.addend_model_num_inputs(Handle))];
            for (int index = 0; index < names.Length; index++)
            {
                nuint position = (nuint)index;
                names[index] = Text.Borrowed(Handle, model => AddendNative.addend_model_input_name(model, position)) ?? "";
            }
            return names;
        }
    }

    private ModelHandle Handle => (ModelHandle)OwnedHandle;

    /// <summary>Loads a TorchScript file. It is a program: load only what you trust.</summary>
    /// <param name="path">The file.</param>
    /// <param name="dtype">Converts parameters and floating-point buffers; null: as they are.</param>
    /// <returns>The model.</returns>
    /// <exception cref="FileNotFoundException">There is no such file.</exception>
    /// <exception cref="NotSupportedException">The file holds compiled operations that tracing cannot see.</exception>
    public static Model Load(string path, DType? dtype = null)
    {
        AddendNative.addend_model_load(Files.Existing(path), (int)(dtype ?? 0), out ModelHandle handle);
        return new Model(handle);
    }

    /// <summary>Loads the bytes of a TorchScript file.</summary>
    /// <param name="content">All bytes of it.</param>
    /// <param name="dtype">Converts parameters and floating-point buffers; null: as they are.</param>
    /// <returns>The model.</returns>
    public static unsafe Model Load(ReadOnlySpan<byte> content, DType? dtype = null)
    {
        fixed (byte* data = content)
        {
            AddendNative.addend_model_load_bytes(
                (IntPtr)data, (nuint)content.Length, (int)(dtype ?? 0), out ModelHandle handle);
            return new Model(handle);
        }
    }

    /// <summary>Runs the plain model: its tensors, without compositions.</summary>
    /// <param name="request">The inputs; splits and probes are not looked at.</param>
    /// <param name="cancellationToken">Ends the run before its next operator.</param>
    /// <returns>What the model computes.</returns>
    /// <exception cref="OperationCanceledException">The run was ended.</exception>
    public Results Run(Request request, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(request);
        return Cancellation.Run(Asked, cancellationToken);

        Results Asked(CancellationHandle cancellation)
        {
            using RequestHandle handle = request.Build(cancellation);
            AddendNative.addend_model_run(Handle, handle, out ResultsHandle results);
            return new Results(results);
        }
    }

    /// <inheritdoc cref="Run(Request, CancellationToken)"/>
    /// <param name="input">The only input.</param>
    /// <param name="cancellationToken"/>
    public Results Run(Input input, CancellationToken cancellationToken = default) =>
        Run(new Request(input), cancellationToken);

    /// <summary>The main job: the compositions of what the model computes, then those of the probes, and the
    /// report.</summary>
    /// <param name="request">The inputs, how they are split, and what is wanted.</param>
    /// <param name="context">The policy; null: that of the defaults.</param>
    /// <param name="cancellationToken">Ends the run before its next operator.</param>
    /// <returns>The outputs, then the probes.</returns>
    /// <exception cref="NotSupportedException">An operator has no rule.</exception>
    /// <exception cref="AddendException">A tracing failure.</exception>
    /// <exception cref="OperationCanceledException">The run was ended.</exception>
    public Results Decompose(
        Request request, Context? context = null, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(request);
        return Cancellation.Run(Asked, cancellationToken);

        Results Asked(CancellationHandle cancellation)
        {
            using RequestHandle handle = request.Build(cancellation);
            AddendNative.addend_model_decompose(Context.HandleOf(context), Handle, handle, out ResultsHandle results);
            return new Results(Callbacks.Finished(results));
        }
    }

    /// <inheritdoc cref="Decompose(Request, Context?, CancellationToken)"/>
    /// <param name="input">The only input.</param>
    /// <param name="context"/>
    /// <param name="cancellationToken"/>
    public Results Decompose(Input input, Context? context = null, CancellationToken cancellationToken = default) =>
        Decompose(new Request(input), context, cancellationToken);

    /// <inheritdoc cref="Decompose(Request, Context?, CancellationToken)"/>
    /// <param name="inputs">The inputs by the names of the model's arguments.</param>
    /// <param name="context"/>
    /// <param name="cancellationToken"/>
    public Results Decompose(
        IReadOnlyDictionary<string, Input> inputs,
        Context? context = null,
        CancellationToken cancellationToken = default) =>
        Decompose(new Request(inputs), context, cancellationToken);

    /// <summary>The exact Shapley values of the components for the model's first output: at most 16 components, 2^numc
    /// runs. What <see cref="Decompose(Request, Context?, CancellationToken)"/> is compared with.</summary>
    /// <param name="request">The inputs and how they are split.</param>
    /// <param name="cancellationToken">Ends the runs.</param>
    /// <returns>A composition of the first output.</returns>
    /// <exception cref="OperationCanceledException">The run was ended.</exception>
    public Composition Shapley(Request request, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(request);
        return Cancellation.Run(Asked, cancellationToken);

        Composition Asked(CancellationHandle cancellation)
        {
            using RequestHandle handle = request.Build(cancellation);
            AddendNative.addend_model_shapley(Handle, handle, out CompositionHandle composition);
            return new Composition(composition);
        }
    }
}
