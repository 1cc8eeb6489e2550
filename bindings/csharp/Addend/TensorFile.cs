using Addend.Native;

namespace Addend;

/// <summary>The tensors of a <c>.safetensors</c> or <c>.npy</c> file. Files are written as <c>.safetensors</c>.</summary>
public sealed class TensorFile : AddendObject
{
    /// <summary>An empty file, to be filled by <see cref="Add"/>.</summary>
    public TensorFile()
        : this(Create())
    {
    }

    private TensorFile(TensorFileHandle handle)
        : base(handle)
    {
    }

    /// <summary>The names of the tensors, in order; that of a <c>.npy</c> file is empty.</summary>
    public IReadOnlyList<string> Names =>
        [.. Text.All(Handle, AddendNative.addend_tensor_file_size(Handle), AddendNative.addend_tensor_file_name)
            .Select(name => name ?? "")];

    private TensorFileHandle Handle => (TensorFileHandle)OwnedHandle;

    /// <summary>A tensor by its name.</summary>
    /// <param name="name">One of <see cref="Names"/>.</param>
    /// <returns>A new tensor on the memory of the file.</returns>
    /// <exception cref="KeyNotFoundException">The file has no such tensor.</exception>
    public Tensor this[string name] => Find(Text.Checked(name, nameof(name)));

    /// <summary>Reads a file.</summary>
    /// <param name="path">A <c>.safetensors</c> or <c>.npy</c> file.</param>
    /// <returns>What the file holds.</returns>
    /// <exception cref="FileNotFoundException">There is no such file.</exception>
    public static TensorFile Load(string path)
    {
        AddendNative.addend_tensor_file_read(Files.Existing(path), out TensorFileHandle handle);
        return new TensorFile(handle);
    }

    /// <summary>Reads the bytes of a file.</summary>
    /// <param name="content">All bytes of it.</param>
    /// <param name="name">What messages call it.</param>
    /// <returns>What the file holds.</returns>
    public static unsafe TensorFile Load(ReadOnlySpan<byte> content, string name = "memory")
    {
        fixed (byte* data = content)
        {
            AddendNative.addend_tensor_file_decode(
                (IntPtr)data, (nuint)content.Length, Text.Checked(name, nameof(name)), out TensorFileHandle handle);
            return new TensorFile(handle);
        }
    }

    /// <summary>The first tensor of the file, which is the only one of a <c>.npy</c> file.</summary>
    /// <returns>A new tensor on the memory of the file.</returns>
    /// <exception cref="KeyNotFoundException">The file is empty.</exception>
    public Tensor First() => Find(null!);

    /// <summary>The text that the file's metadata has under a key.</summary>
    /// <param name="key">The key.</param>
    /// <returns>The text; null if there is no such key.</returns>
    public string? Metadata(string key)
    {
        Text.Checked(key, nameof(key));
        return Text.Borrowed(Handle, file => AddendNative.addend_tensor_file_metadata(file, key));
    }

    /// <summary>Adds a tensor, or replaces the one of that name.</summary>
    /// <param name="name">Its name.</param>
    /// <param name="tensor">The tensor.</param>
    public void Add(string name, Tensor tensor)
    {
        ArgumentNullException.ThrowIfNull(tensor);
        AddendNative.addend_tensor_file_add(Handle, Text.Checked(name, nameof(name)), tensor.Handle);
    }

    /// <summary>Lets the file say something under a key.</summary>
    /// <param name="key">The key.</param>
    /// <param name="value">The text.</param>
    public void SetMetadata(string key, string value) =>
        AddendNative.addend_tensor_file_set_metadata(
            Handle, Text.Checked(key, nameof(key)), Text.Checked(value, nameof(value)));

    /// <summary>Writes it as <c>.safetensors</c>, all or nothing.</summary>
    /// <param name="path">Where to.</param>
    public void Save(string path) => AddendNative.addend_tensor_file_write(Handle, Text.Checked(path, nameof(path)));

    /// <summary>The bytes that <see cref="Save"/> would write.</summary>
    /// <returns>A new array.</returns>
    public byte[] ToBytes()
    {
        AddendNative.addend_tensor_file_encode(Handle, out StringHandle bytes);
        return Text.TakenBytes(bytes);
    }

    private static TensorFileHandle Create()
    {
        AddendNative.addend_tensor_file_create(out TensorFileHandle handle);
        return handle;
    }

    private Tensor Find(string name)
    {
        AddendNative.addend_tensor_file_tensor(Handle, name, out TensorHandle handle);
        return new Tensor(handle);
    }
}
