namespace Addend.Tests;

/// <summary>A test with a folder of its own and a scope, which go with it.</summary>
public abstract class FolderTest : IDisposable
{
    private readonly Scope _scope = new();

    /// <summary>The folder, which is empty at first.</summary>
    protected string Folder { get; } = Directory.CreateTempSubdirectory().FullName;

    public void Dispose()
    {
        _scope.Dispose();
        Directory.Delete(Folder, recursive: true);
        GC.SuppressFinalize(this);
    }
}
