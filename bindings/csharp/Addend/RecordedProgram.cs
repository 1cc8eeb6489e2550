using System.Text.Json.Nodes;
using Addend.Native;

namespace Addend;

/// <summary>The kind of a tensor of a program.</summary>
public enum ValueKind
{
    /// <summary>An input of the model.</summary>
    Input,

    /// <summary>A parameter of the model.</summary>
    Parameter,

    /// <summary>A buffer of the model.</summary>
    Buffer,

    /// <summary>A tensor that was there before the run and is none of these.</summary>
    Constant,

    /// <summary>The result of an operator.</summary>
    Result,

    /// <summary>An element of a list that an operator gave or took.</summary>
    Part,
}

/// <summary>A tensor that a program gives.</summary>
/// <param name="Name">The name that its result has.</param>
/// <param name="DType">What its elements are.</param>
/// <param name="Shape">The sizes of its dimensions in the recording; other inputs may give others.</param>
public sealed record ProgramOutput(string Name, DType DType, IReadOnlyList<long> Shape)
{
    /// <summary>Name, type and shape in one line.</summary>
    public override string ToString() => $"{Name}: {DType} [{string.Join(", ", Shape)}]";
}

/// <summary>
/// A program: what a model did for one input, to be read, kept, and run again without the model. It stops where a number
/// that left the tensors (<c>item()</c>, a condition, the size of <c>nonzero()</c>) is another one than in the recording.
/// <code>
/// using RecordedProgram program = model.Record(image);
/// Console.WriteLine(program.Code());
/// using Results results = program.Replay(other, new ReplayOptions { Values = ["relu"] });
/// </code>
/// It never changes, and may be used by any number of threads at once. (The compiler calls a class of its own Program.)
/// </summary>
public sealed class RecordedProgram : AddendObject
{
    internal RecordedProgram(ProgramHandle handle)
        : base(handle)
    {
    }

    /// <summary>How many operators were called.</summary>
    public int NumOperators => checked((int)AddendNative.addend_program_num_operators(Handle));

    /// <summary>The names of all its tensors, which are unique, in order.</summary>
    public IReadOnlyList<string> Names => [.. Values().Select(value => value.Name)];

    /// <summary>The outputs of the program, in order; known before it runs.</summary>
    public IReadOnlyList<ProgramOutput> Outputs
    {
        get
        {
            var outputs = new ProgramOutput[checked((int)AddendNative.addend_program_num_outputs(Handle))];
            for (int index = 0; index < outputs.Length; index++)
            {
                nuint position = (nuint)index;
                var shape = new long[checked((int)AddendNative.addend_program_output_num_dims(Handle, position))];
                for (int dim = 0; dim < shape.Length; dim++)
                {
                    shape[dim] = AddendNative.addend_program_output_size(Handle, position, (nuint)dim);
                }
                outputs[index] = new ProgramOutput(
                    Text.Borrowed(Handle, program => AddendNative.addend_program_output_name(program, position))!,
                    (DType)AddendNative.addend_program_output_dtype(Handle, position),
                    shape);
            }
            return outputs;
        }
    }

    /// <summary>A summary that is known before it runs, as a JSON object: <c>operators</c>, <c>inputs</c>,
    /// <c>output</c>, <c>values</c>, <c>guards</c>, and <c>free</c>, the dimensions of inputs that may have another
    /// size.</summary>
    public string SummaryJson => Text.Of(Handle, AddendNative.addend_program_summary);

    private ProgramHandle Handle => (ProgramHandle)OwnedHandle;

    /// <summary>Reads what <see cref="Save"/> has written. That runs nothing; running a program runs the operators that the
    /// files name, so run only what you trust.</summary>
    /// <param name="folder">The folder.</param>
    /// <returns>The program.</returns>
    /// <exception cref="DirectoryNotFoundException">There is no such folder.</exception>
    /// <exception cref="ArgumentException">Its files are cut off, edited, or of another version.</exception>
    public static RecordedProgram Load(string folder)
    {
        Text.Checked(folder, nameof(folder));
        if (!Directory.Exists(folder))
        {
            throw new DirectoryNotFoundException($"{folder}: no such folder");
        }
        AddendNative.addend_program_load(folder, out ProgramHandle handle);
        return new RecordedProgram(handle);
    }

    /// <summary>Writes <c>program.json</c> and <c>weights.safetensors</c>.</summary>
    /// <param name="folder">Made if there is none.</param>
    public void Save(string folder) =>
        AddendNative.addend_program_save(Handle, Text.Checked(folder, nameof(folder)));

    /// <summary>Writes a TorchScript file, which LibTorch runs without this library, with the parameters and buffers by their
    /// names.</summary>
    /// <param name="path">The file.</param>
    /// <exception cref="InvalidOperationException">A number that depends on elements has left the tensors: such a file would
    /// go the recorded way without a word.</exception>
    /// <exception cref="NotSupportedException">TorchScript has no such thing: plain values among the inputs.</exception>
    public void ExportTorchScript(string path) =>
        AddendNative.addend_program_export_torchscript(Handle, Text.Checked(path, nameof(path)));

    /// <summary>The program with every floating-point tensor of another floating-point type, parameters included. It is
    /// replayed on inputs of that type, and stops at an operator that gives another one.</summary>
    /// <param name="dtype">The type.</param>
    /// <returns>A new program.</returns>
    public RecordedProgram To(DType dtype)
    {
        AddendNative.addend_program_to(Handle, (int)dtype, out ProgramHandle handle);
        return new RecordedProgram(handle);
    }

    /// <summary>Lists everything that a replay lacks, before anything runs.</summary>
    /// <param name="request">The inputs.</param>
    /// <param name="context">Whose rules count; null: those of the defaults.</param>
    /// <returns>Nothing where nothing is missing.</returns>
    public IReadOnlyList<Requirement> Requirements(Request request, Context? context = null) =>
        Model.Ask(request, asked =>
        {
            AddendNative.addend_program_requirements(Context.HandleOf(context), Handle, asked, out StringHandle json);
            return Requirement.Read(Text.Taken(json));
        }, CancellationToken.None);

    /// <summary>The program as a model, to be run, decomposed and attributed without the one that was recorded.</summary>
    /// <returns>A new model.</returns>
    public Model ToModel()
    {
        AddendNative.addend_program_model(Handle, out ModelHandle handle);
        return new Model(handle);
    }

    /// <summary>Runs the program.</summary>
    /// <param name="request">Its inputs are taken.</param>
    /// <param name="options">Which inner tensors are wanted, and what guards do; null: none, and they have to hold.</param>
    /// <param name="cancellationToken">Ends the call, if it is cancelled before the model runs.</param>
    /// <returns>What the model would give, then the inner tensors by their names.</returns>
    /// <exception cref="InvalidOperationException">A guard does not hold.</exception>
    /// <exception cref="ArgumentException">The inputs are not like those of the recording.</exception>
    public Results Replay(
        Request request, ReplayOptions? options = null, CancellationToken cancellationToken = default)
    {
        string json = (options ?? new ReplayOptions()).ToJson();
        return Model.Ask(request, asked =>
        {
            AddendNative.addend_program_replay(Handle, asked, json, out ResultsHandle results);
            return new Results(results);
        }, cancellationToken);
    }

    /// <inheritdoc cref="Replay(Request, ReplayOptions?, CancellationToken)"/>
    /// <param name="input">The only input.</param>
    /// <param name="options"/>
    /// <param name="cancellationToken"/>
    public Results Replay(Input input, ReplayOptions? options = null, CancellationToken cancellationToken = default) =>
        Replay(new Request(input), options, cancellationToken);

    /// <summary>The names of its tensors of one kind, in order.</summary>
    /// <param name="kind">The kind.</param>
    /// <returns>The names.</returns>
    public IReadOnlyList<string> NamesOf(ValueKind kind) =>
        [.. Values().Where(value => value.Kind == kind).Select(value => value.Name)];

    /// <summary>Its operators as text, each under the source lines that called it.</summary>
    /// <param name="options">How it is written; null: as by default.</param>
    /// <returns>Many lines.</returns>
    public string Code(CodeOptions? options = null) =>
        Text.Of(Handle, (options ?? new CodeOptions()).ToJson(), AddendNative.addend_program_code_text);

    /// <summary>Its code as a JSON object: <c>calls</c>, each with its <c>line</c>, and the <c>places</c> where they
    /// stand.</summary>
    /// <param name="options">How it is written; null: as by default.</param>
    /// <returns>The text.</returns>
    public string CodeAsJson(CodeOptions? options = null) =>
        Text.Of(Handle, (options ?? new CodeOptions()).ToJson(), AddendNative.addend_program_code_json);

    /// <summary>Its graph as a JSON object: <c>nodes</c> in topological order and <c>edges</c>.</summary>
    /// <param name="numbers">What is known of each operator.</param>
    /// <returns>The text.</returns>
    public string GraphAsJson(params CallNumbers[] numbers)
    {
        var options = new JsonObject { ["numbers"] = CallNumbers.ToJson(numbers) };
        return Text.Of(Handle, options.ToJsonString(), AddendNative.addend_program_graph_json);
    }

    /// <summary>Its graph for Graphviz.</summary>
    /// <param name="sources">Whether parameters, buffers and constants are nodes.</param>
    /// <param name="modules">Whether modules are boxes.</param>
    /// <returns>A graph in the language DOT.</returns>
    public string GraphAsDot(bool sources = false, bool modules = true)
    {
        var options = new JsonObject { ["sources"] = sources, ["modules"] = modules };
        return Text.Of(Handle, options.ToJsonString(), AddendNative.addend_program_graph_dot);
    }

    /// <summary>Its graph as a page for a browser, which needs nothing else.</summary>
    /// <param name="title">What the page is called.</param>
    /// <param name="numbers">What is known of each operator.</param>
    /// <returns>The text.</returns>
    public string GraphAsHtml(string title = "program", params CallNumbers[] numbers)
    {
        var options = new JsonObject
        {
            ["title"] = Text.Checked(title, nameof(title)),
            ["numbers"] = CallNumbers.ToJson(numbers),
        };
        return Text.Of(Handle, options.ToJsonString(), AddendNative.addend_program_graph_html);
    }

    private IEnumerable<(string Name, ValueKind Kind)> Values()
    {
        nuint count = AddendNative.addend_program_num_values(Handle);
        return Text.All(Handle, count, AddendNative.addend_program_value_name).Zip(
            Text.All(Handle, count, AddendNative.addend_program_value_kind),
            (name, kind) => (name!, Enum.Parse<ValueKind>(kind!, ignoreCase: true)));
    }
}
