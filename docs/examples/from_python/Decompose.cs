// Decomposes a model that was recorded in Python.
using System.Globalization;
using Addend;

if (args.Length != 1)
{
    Console.Error.WriteLine("usage: Decompose FOLDER");
    return 2;
}
CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;

// Disposes at the end what is made from here on.
using var scope = new Scope();
Model model = RecordedProgram.Load(Path.Combine(args[0], "program")).ToModel();
TensorFile sample = TensorFile.Load(Path.Combine(args[0], "sample.safetensors"));

// One component for each word, explained against padding.
var inputs = new Dictionary<string, Input>
{
    ["batch.input_ids"] = new Input(sample["batch.input_ids"]) { Split = Split.Along(1), Baseline = 0.0 },
    ["batch.attention_mask"] = sample["batch.attention_mask"],
};

Explanation explanation = model.Decompose(inputs).Explain();
Console.WriteLine($"output {explanation.Target} = {explanation.Value:F4}");
foreach (Contribution word in explanation.Top(3))
{
    Console.WriteLine($"word {word.Name}: {word.Value:+0.0000;-0.0000}");
}
Console.WriteLine($"reference: {explanation.Reference:F4}");
Console.WriteLine($"recovery: {explanation.Recovery:F4}");
return 0;
