using System.Runtime.InteropServices;
using Addend.Native;

namespace Addend;

/// <summary>The native library behind this assembly.</summary>
public static class AddendLibrary
{
    /// <summary>Its release: <c>0.1.0</c>.</summary>
    public static string Version => Text.Static(AddendNative.addend_version());

    /// <summary>The LibTorch that it was built for: <c>1.13.1</c>.</summary>
    public static string LibTorchVersion => Text.Static(AddendNative.addend_libtorch_version());

    /// <summary>The version of its C interface.</summary>
    public static int AbiVersion => AddendNative.addend_abi_version();

    /// <summary>Throws unless this process has loaded the LibTorch that the library was built for, and only
    /// that.</summary>
    /// <exception cref="InvalidOperationException">It names both versions or both files.</exception>
    public static void CheckLibTorch() => AddendNative.addend_check_libtorch();

    /// <summary>Describes this process for reports of problems, as lines for people: versions, files, LibTorch,
    /// threads, devices and the runtime of .NET, and what could not be loaded, with the reason. The lines and their
    /// order may change from release to release.</summary>
    /// <returns>The lines.</returns>
    public static string ShowConfig()
    {
        string library;
        try
        {
            library = Text.Static(AddendNative.addend_show_config());
        }
        catch (DllNotFoundException error)
        {
            library = Library.ConfigOfFailure ?? $"Addend {AssemblyVersion}\n  refused: {error.Message}";
        }
        var lines = new List<string>
        {
            library,
            RuntimeInformation.FrameworkDescription,
            $"  runtime: {RuntimeInformation.RuntimeIdentifier}, {RuntimeInformation.OSDescription}",
            $"  assembly: {AssemblyVersion} in {Library.FolderOfThisAssembly()}",
        };
        // A wrapper of LibTorch that is there too has loaded the LibTorch that everybody gets.
        lines.AddRange(AppDomain.CurrentDomain.GetAssemblies()
            .Select(assembly => assembly.GetName())
            .Where(name => name.Name == "TorchSharp")
            .Select(name => $"  TorchSharp: {name.Version}"));
        return string.Join('\n', lines);
    }

    private static string AssemblyVersion => typeof(AddendLibrary).Assembly.GetName().Version!.ToString(3);

    /// <summary>Says how many threads LibTorch computes with, here and in everything else of this process.</summary>
    /// <param name="count">How many.</param>
    public static void SetThreads(int count) => AddendNative.addend_set_num_threads(count);
}
