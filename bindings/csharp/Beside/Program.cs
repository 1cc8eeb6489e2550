// Prints the error that a program gets that has loaded another LibTorch before: Beside FOREIGN.
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
