using Addend.TorchSharp.Tests;

if (args is ["first"])
{
    return First.Run();
}
LibTorch.Load();
return args is ["measure", ..] ? Measure.Run(args[1..]) : await Xunit.Runner.InProc.SystemConsole.ConsoleRunner.Run(args);
