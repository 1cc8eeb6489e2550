// Explains which digit a model sees in an image: the same program in five languages.
using System.Globalization;
using Addend;

if (args.Length != 2)
{
    Console.Error.WriteLine("usage: Quickstart MODEL SAMPLE");
    return 2;
}
CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;

// Disposes at the end what is made from here on.
using var scope = new Scope();
Model model = Model.Load(args[0]);
Tensor image = TensorFile.Load(args[1])["input"];

// One component for each pixel, explained against an empty image.
var input = new Input(image) { Split = Split.Along(2, 3), Baseline = 0.0 };

Explanation explanation = model.Decompose(input).Explain();
Console.WriteLine($"output {explanation.Target} = {explanation.Value:F4}");
foreach (Contribution pixel in explanation.Top(3))
{
    Console.WriteLine($"pixel {pixel.Name}: {pixel.Value:+0.0000;-0.0000}");
}
Console.WriteLine($"leftover: {explanation.Leftover:0.0e+00}");
Console.WriteLine($"recovery error: {explanation.RecoveryError:0.0e+00}");
return 0;
