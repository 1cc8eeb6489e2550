// What a program is told that has loaded another LibTorch: Beside FOREIGN.
using System.Runtime.InteropServices;
using Addend;

NativeLibrary.Load(args[0]);
try
{
    Console.WriteLine(AddendLibrary.Version);
    return 1;
}
catch (DllNotFoundException error)
{
    Console.WriteLine(error.Message);
    Console.WriteLine(AddendLibrary.ShowConfig());
    return 0;
}
