// Scores a row with ONNX Runtime, and explains the score with Addend, from one file and in one process.
using System.Globalization;
using Addend;
using Microsoft.ML.OnnxRuntime;
using Microsoft.ML.OnnxRuntime.Tensors;

if (args.Length != 3)
{
    Console.Error.WriteLine("usage: ScoreAndExplain MODEL SAMPLE BASELINE");
    return 2;
}
CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;

// Disposes at the end what Addend makes from here on.
using var scope = new Scope();
Addend.Tensor row = TensorFile.Load(args[1])["input"];
Addend.Tensor mean = TensorFile.Load(args[2]).First();

using var session = new InferenceSession(args[0]);
int[] shape = row.Shape.Select(size => (int)size).ToArray();
var table = NamedOnnxValue.CreateFromTensor("table", new DenseTensor<float>(row.ToArray<float>(), shape));
using var results = session.Run(new[] { table });
float[] scores = results.First().AsEnumerable<float>().ToArray();
int label = Array.IndexOf(scores, scores.Max());
Console.WriteLine($"ONNX Runtime: {scores[label]:F4}");

Model model = Model.Load(args[0]);
Explanation explanation = model
    .Decompose(new Input(row) { Split = Split.Along(1), Baseline = mean })
    .Explain(Target.At(0, label));
Console.WriteLine($"Addend: {explanation.Value:F4}");
foreach (Contribution column in explanation.Top(3))
{
    Console.WriteLine($"  {column.Name}: {column.Value:+0.0000;-0.0000}");
}
Console.WriteLine($"  reference: {explanation.Reference:F4}, leftover: {explanation.Leftover:F4}");
return 0;
