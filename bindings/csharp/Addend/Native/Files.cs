namespace Addend.Native;

internal static class Files
{
    /// <summary>A path that the library can open. .NET has an exception of its own for a file that is not there.</summary>
    internal static string Existing(string path)
    {
        Text.Checked(path, nameof(path));
        return File.Exists(path) ? path : throw new FileNotFoundException($"{path}: no such file", path);
    }
}
