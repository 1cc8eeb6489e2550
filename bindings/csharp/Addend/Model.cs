using System.Text.Json.Nodes;
using Addend.Native;

namespace Addend;

/// <summary>
/// A model from a file, on the CPU, in evaluation mode. It never changes, and may be used by any number of threads at
/// once. A run blocks the thread that asks for it: where that matters, <c>Task.Run(() => model.Decompose(request,
/// cancellationToken: token), token)</c>.
/// </summary>
public sealed class Model : AddendObject
{
    private string[]? _inputNames;

    internal Model(ModelHandle handle)
        : base(handle)
    {
    }

    /// <summary>The names of the arguments that the model takes, in order.</summary>
    public IReadOnlyList<string> InputNames => _inputNames ??=
        [.. Text.All(Handle, AddendNative.addend_model_num_inputs(Handle), AddendNative.addend_model_input_name)
            .Select(name => name ?? "")];

    private ModelHandle Handle => (ModelHandle)OwnedHandle;

    /// <summary>Loads a TorchScript file, a program that torch.export saved (.pt2), or an ONNX model. Run only what you
    /// trust.</summary>
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

    /// <summary>Loads the bytes of such a file.</summary>
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

    /// <summary>The SHA-256 of a model, as <see cref="AuditLog"/> and <see cref="Job"/> have it. That of a file is the one of
    /// its bytes. An ONNX model with weights in files beside it has one that stands for all of these files, and so has the
    /// folder of a program.</summary>
    /// <param name="path">A file that <see cref="Load(string, DType?)"/> takes, or a folder that
    /// <see cref="RecordedProgram.Save"/> wrote.</param>
    /// <returns>64 hexadecimal digits.</returns>
    /// <exception cref="FileNotFoundException">There is no such file.</exception>
    /// <exception cref="KeyNotFoundException">Weights of an ONNX model are missing.</exception>
    public static string Sha256(string path)
    {
        string existing = Directory.Exists(path) ? Text.Checked(path, nameof(path)) : Files.Existing(path);
        return Text.Of(existing, AddendNative.addend_model_sha256);
    }

    /// <summary>A copy of a model from a file, of another dtype or on another device. Its inputs have to be
    /// there too.</summary>
    /// <param name="dtype">Of parameters and floating-point buffers; null: as they are.</param>
    /// <param name="device">The device, <c>cuda:0</c>; null: where it is.</param>
    /// <returns>A new model.</returns>
    /// <exception cref="NotSupportedException">The model does not come from a file.</exception>
    public Model To(DType? dtype = null, string? device = null)
    {
        AddendNative.addend_model_to(
            Handle, (int)(dtype ?? 0), device is null ? null! : Text.Checked(device, nameof(device)), out ModelHandle copy);
        return new Model(copy);
    }

    /// <summary>Forgets what requests with <see cref="Request.KeepReferences"/> made it keep: to free the memory, or after
    /// writes to parameters that no operator made.</summary>
    public void ForgetReferences() => AddendNative.addend_model_forget_references(Handle);

    /// <summary>A model of the same parameters that runs other methods than <c>forward</c>. They run one after the
    /// other, each on as many of the inputs as it has arguments. Several methods give the outputs of each, in order,
    /// and their inputs are called <c>encode.x</c>.</summary>
    /// <param name="names">The names of the methods.</param>
    /// <returns>A new model.</returns>
    /// <exception cref="KeyNotFoundException">The model has no such method.</exception>
    /// <exception cref="NotSupportedException">The model does not come from a TorchScript file.</exception>
    public Model Methods(params string[] names)
    {
        ArgumentNullException.ThrowIfNull(names);
        foreach (string name in names)
        {
            if (Text.Checked(name, nameof(names)).Contains(',', StringComparison.Ordinal))
            {
                throw new ArgumentException($"a method is not called {name}", nameof(names));
            }
        }
        AddendNative.addend_model_methods(Handle, string.Join(',', names), out ModelHandle model);
        return new Model(model);
    }

    /// <summary>Lists everything that a run lacks, before anything runs. It is found by reading the source of the
    /// model, including branches that are not taken.</summary>
    /// <param name="request">The inputs.</param>
    /// <param name="context">Whose rules count; null: those of the defaults.</param>
    /// <returns>Nothing where nothing is missing.</returns>
    public IReadOnlyList<Requirement> Requirements(Request request, Context? context = null) =>
        Ask(request, asked =>
        {
            AddendNative.addend_model_requirements(Context.HandleOf(context), Handle, asked, out StringHandle json);
            return Requirement.Read(Text.Taken(json));
        }, CancellationToken.None);

    /// <summary>Runs the plain model: its tensors, without compositions.</summary>
    /// <param name="request">The inputs; splits and probes are not looked at.</param>
    /// <param name="cancellationToken">Ends the run before its next operator.</param>
    /// <returns>What the model computes.</returns>
    /// <exception cref="OperationCanceledException">The run was ended.</exception>
    public Results Run(Request request, CancellationToken cancellationToken = default) =>
        Ask(request, asked =>
        {
            AddendNative.addend_model_run(Handle, asked, out ResultsHandle results);
            return new Results(results);
        }, cancellationToken);

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
        Request request, Context? context = null, CancellationToken cancellationToken = default) =>
        Ask(request, asked =>
        {
            AddendNative.addend_model_decompose(Context.HandleOf(context), Handle, asked, out ResultsHandle results);
            return new Results(results);
        }, cancellationToken);

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

    /// <summary>Computes what each element of the inputs contributed to the targets of a request, in one backward
    /// sweep, which costs the same for ten components and for ten thousand.</summary>
    /// <param name="request">The inputs, how they are split, and the targets; probes are not looked at.</param>
    /// <param name="context">The policy; null: that of the defaults.</param>
    /// <param name="cancellationToken">Ends the run before its next operator.</param>
    /// <returns>An explanation for each target, and a tensor for each input.</returns>
    /// <exception cref="InvalidOperationException">The policy looks at all components together, which no sweep back
    /// can.</exception>
    /// <exception cref="NotSupportedException">An operator has no rule.</exception>
    /// <exception cref="OperationCanceledException">The run was ended.</exception>
    public Attribution Attribute(
        Request request, Context? context = null, CancellationToken cancellationToken = default) =>
        Ask(request, asked =>
        {
            AddendNative.addend_model_attribute(
                Context.HandleOf(context), Handle, asked, out AttributionHandle attribution);
            return new Attribution(
                attribution,
                request.StructuredNames ?? InputNames,
                [.. request.Inside.Select(inside => inside.Selector)]);
        }, cancellationToken);

    /// <inheritdoc cref="Attribute(Request, Context?, CancellationToken)"/>
    /// <param name="input">The only input.</param>
    /// <param name="target">The number that is explained.</param>
    /// <param name="context"/>
    /// <param name="cancellationToken"/>
    public Attribution Attribute(
        Input input, Target target = default, Context? context = null, CancellationToken cancellationToken = default) =>
        Attribute(new Request(input) { Targets = [target] }, context, cancellationToken);

    /// <summary>Makes attributions of requests like this one ready for many rows. Where the request asks for the target of
    /// each example, later ones may have another number of examples.</summary>
    /// <param name="request">An example of what will be asked.</param>
    /// <param name="context">The policy; null: that of the defaults.</param>
    /// <param name="cancellationToken">Ends the run before its next operator.</param>
    /// <returns>The plan.</returns>
    /// <exception cref="InvalidOperationException">The model cannot be planned: it draws random numbers, writes its own
    /// memory, gives sizes that depend on elements, or computes what no operator shows.</exception>
    /// <exception cref="OperationCanceledException">The run was ended.</exception>
    public Plan Plan(Request request, Context? context = null, CancellationToken cancellationToken = default) =>
        Ask(request, asked =>
        {
            AddendNative.addend_model_plan(Context.HandleOf(context), Handle, asked, out PlanHandle plan);
            return new Plan(plan, request.StructuredNames ?? InputNames);
        }, cancellationToken);

    /// <summary>Runs the model once and keeps what it did. From the <see cref="Request.Others"/>, of other sizes, the program
    /// learns which numbers follow which size, so that it runs for other sizes too; what it learned from two it tries on a
    /// third. Without others it runs for the sizes of the recording.</summary>
    /// <param name="request">The inputs; splits, probes and targets are not looked at.</param>
    /// <param name="cancellationToken">Ends the call, if it is cancelled before the model runs.</param>
    /// <returns>The program.</returns>
    /// <exception cref="NotSupportedException">Something cannot be recorded.</exception>
    /// <exception cref="InvalidOperationException">A number follows no size of the inputs.</exception>
    public RecordedProgram Record(Request request, CancellationToken cancellationToken = default) =>
        Ask(request, asked =>
        {
            AddendNative.addend_model_record(Handle, asked, out ProgramHandle program);
            return new RecordedProgram(program);
        }, cancellationToken);

    /// <inheritdoc cref="Record(Request, CancellationToken)"/>
    /// <param name="input">The only input.</param>
    /// <param name="cancellationToken"/>
    public RecordedProgram Record(Input input, CancellationToken cancellationToken = default) =>
        Record(new Request(input), cancellationToken);

    /// <summary>Whether a recording is the model: records twice, replays, and tries the
    /// <see cref="Request.Others"/>.</summary>
    /// <param name="request">The inputs, and others to try: only they show what depends on the input.</param>
    /// <param name="tolerance">How far results may differ, relative.</param>
    /// <param name="strict">Whether outputs that callers could change, lists and dictionaries, are worth a finding.</param>
    /// <param name="outOfPlace">Whether it also replays without writes in place, which finds aliases that the program does
    /// not know of.</param>
    /// <param name="cancellationToken">Ends the call, if it is cancelled before the model runs.</param>
    /// <returns>What was found.</returns>
    public TraceCheck CheckTrace(
        Request request,
        double tolerance = 1e-5,
        bool strict = true,
        bool outOfPlace = false,
        CancellationToken cancellationToken = default)
    {
        string options = new JsonObject
        {
            ["tolerance"] = OptionText.Finite(tolerance, nameof(tolerance)),
            ["strict"] = strict,
            ["out_of_place"] = outOfPlace,
        }.ToJsonString();
        return Ask(request, asked =>
        {
            AddendNative.addend_model_check_trace(Handle, asked, options, out StringHandle json);
            return TraceCheck.Read(Text.Taken(json));
        }, cancellationToken);
    }

    /// <summary>Computes the interactions of groups: what their contributions owe to each other. It takes one
    /// attribution for each group and one more.</summary>
    /// <param name="request">One example with one target.</param>
    /// <param name="concepts">The groups; components that no concept names are groups by themselves, without concepts all
    /// are.</param>
    /// <param name="context">How to decompose.</param>
    /// <param name="cancellationToken">Ends the run.</param>
    /// <returns>The interactions.</returns>
    /// <exception cref="OperationCanceledException">The run was ended.</exception>
    public Interactions Interactions(
        Request request, Concepts? concepts = null, Context? context = null, CancellationToken cancellationToken = default) =>
        Ask(request, asked =>
        {
            AddendNative.addend_model_interactions(
                Context.HandleOf(context), Handle, asked, concepts?.Handle ?? ConceptsHandle.Null,
                out StringHandle json);
            return new Interactions(Text.Taken(json));
        }, cancellationToken);

    /// <summary>The exact Shapley values of the components for the model's first output: at most 16 components, 2^numc
    /// runs. What <see cref="Decompose(Request, Context?, CancellationToken)"/> is compared with.</summary>
    /// <param name="request">The inputs and how they are split.</param>
    /// <param name="cancellationToken">Ends the runs.</param>
    /// <returns>A composition of the first output.</returns>
    /// <exception cref="OperationCanceledException">The run was ended.</exception>
    public Composition Shapley(Request request, CancellationToken cancellationToken = default) =>
        Ask(request, asked =>
        {
            AddendNative.addend_model_shapley(Handle, asked, out CompositionHandle composition);
            return new Composition(composition);
        }, cancellationToken);

    /// <summary>Asks the library something by a request: a model, a plan, a program or a job.</summary>
    internal static T Ask<T>(Request request, Func<RequestHandle, T> question, CancellationToken cancellationToken)
    {
        ArgumentNullException.ThrowIfNull(request);
        return Cancellation.Run(
            cancellation =>
            {
                using RequestHandle asked = request.Build(cancellation);
                Callbacks.Begin();
                return Callbacks.Finished(question(asked));
            },
            cancellationToken);
    }
}
