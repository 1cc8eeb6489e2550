return await Xunit.Runner.InProc.SystemConsole.ConsoleRunner.Run(args);
