// A process that ends while its threads compute: Exit HOW MODEL SAMPLE. Its exit code is 3, whatever they do.
using System.Diagnostics;
using Addend;

AddendLibrary.SetThreads(1);
Model model = Model.Load(args[1]);
Tensor image = TensorFile.Load(args[2])["input"];
var input = new Input(image) { Split = Split.Along(2, 3), Baseline = 0.0 };
using var running = new CountdownEvent(3);

switch (args[0])
{
    case "return":
        ComputeForEver();
        return 3;
    case "exit":
        ComputeForEver();
        Environment.Exit(3);
        break;
    case "cancelled":
        ComputeForEver(CancellationToken.None, new CancellationTokenSource().Token);
        return 3;
    case "listener":
        ComputeForEver();
        using (var context = new Context(new ContextOptions { Progress = new Exiting() }))
        {
            model.Decompose(input, context);
        }
        break;
    case "operators":
        Start(() => Operators.Call("aten::relu", image).Dispose());
        Start(() => model.Run(input).Dispose());
        Start(() => Model.Load(args[1]).Dispose());
        running.Wait();
        return 3;
    case "long":
        // One operator of a minute, which nothing can cancel.
        Tensor square = Operators.Call("aten::ones", new long[] { 1500, 1500 }).Tensor();
        new Thread(() => Operators.Call("aten::matrix_power", square, 1L << 60)) { IsBackground = true }.Start();
        Thread.Sleep(500);
        return 3;
    case "handler":
        // Until the last handler has returned, everything works, on every thread.
        var worker = new Thread(() =>
        {
            var clock = Stopwatch.StartNew();
            while (clock.ElapsedMilliseconds < 500)
            {
                model.Decompose(input).Dispose();
            }
            Console.WriteLine("the worker has ended");
        });
        AppDomain.CurrentDomain.ProcessExit += (_, _) =>
        {
            worker.IsBackground = true;
            worker.Start();
            worker.Join();
            Console.WriteLine(model.Decompose(input).Explain().Target);
        };
        return 3;
}
return 1;

void ComputeForEver(params CancellationToken[] tokens)
{
    for (int k = 0; k < 3; k++)
    {
        CancellationToken token = tokens.Length > 0 ? tokens[k % tokens.Length] : default;
        Start(() => model.Decompose(input, null, token).Dispose());
    }
    running.Wait();
}

void Start(Action step)
{
    new Thread(() =>
    {
        step();
        running.Signal();
        while (true)
        {
            step();
        }
    })
    { IsBackground = true }.Start();
}

internal sealed class Exiting : IProgress<RunProgress>
{
    public void Report(RunProgress value) => Environment.Exit(3);
}
