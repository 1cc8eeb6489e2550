using System.Buffers.Binary;
using System.Globalization;
using System.Numerics;
using System.Runtime.InteropServices;

namespace Addend.Conformance;

/// <summary>A fault of a request itself, and not of what it asks.</summary>
internal sealed class ProtocolException(string message) : Exception(message);

/// <summary>A request or an answer: tensors and texts in a frame. Numbers go through .NET's own arrays in both
/// directions.</summary>
internal sealed class Message
{
    private readonly TensorFile _file;
    private readonly string _device;
    private readonly HashSet<string> _names;
    private readonly List<string> _complex = [];
    private readonly List<string> _host = [];

    private Message(TensorFile file, string device)
    {
        _file = file;
        _device = device;
        _names = [.. file.Names];
        _complex.AddRange(Lines("complex"));
        _host.AddRange(Lines("host"));
    }

    /// <summary>An empty answer.</summary>
    internal Message()
        : this(new TensorFile(), "cpu")
    {
    }

    /// <summary>The bytes of the next frame; null at the end.</summary>
    internal static byte[]? Read(Stream input)
    {
        var length = new byte[4];
        if (input.ReadAtLeast(length, length.Length, throwOnEndOfStream: false) < length.Length)
        {
            return null;
        }
        var blob = new byte[BinaryPrimitives.ReadInt32LittleEndian(length)];
        input.ReadExactly(blob);
        return blob;
    }

    /// <summary>A request, whose tensors are wanted on a device.</summary>
    internal static Message Decode(byte[] blob, string device) => new(TensorFile.Load(blob, "request"), device);

    internal void Write(Stream output)
    {
        if (_complex.Count > 0)
        {
            Put("complex", string.Join('\n', _complex));
        }
        byte[] blob = _file.ToBytes();
        var length = new byte[4];
        BinaryPrimitives.WriteInt32LittleEndian(length, blob.Length);
        output.Write(length);
        output.Write(blob);
        output.Flush();
    }

    // Texts

    internal string this[string key] => _file.Metadata(key) ?? "";

    internal bool Has(string key) => this[key].Length > 0;

    internal string[] Lines(string key) => Has(key) ? this[key].Split('\n') : [];

    /// <summary>The entries of a list with so many fields.</summary>
    internal string[][] Fields(string key, int count)
    {
        string[][] entries = Array.ConvertAll(Lines(key), line => line.Split('\t'));
        return Array.TrueForAll(entries, entry => entry.Length == count)
            ? entries
            : throw new ProtocolException($"{key} has entries that are not of {count} fields");
    }

    internal static long[] Integers(string text) =>
        text.Length > 0 ? Array.ConvertAll(text.Split(','), part => long.Parse(part, CultureInfo.InvariantCulture)) : [];

    internal long? Integer(string key) => Has(key) ? Integers(this[key])[0] : null;

    internal static double Number(string text) =>
        BitConverter.UInt64BitsToDouble(ulong.Parse(text, NumberStyles.HexNumber, CultureInfo.InvariantCulture));

    internal static string Text(double number) =>
        BitConverter.DoubleToUInt64Bits(number).ToString("x16", CultureInfo.InvariantCulture);

    internal static DType DTypeOf(string name) => Enum.Parse<DType>(name, ignoreCase: true);

    internal void Put(string key, string text) => _file.SetMetadata(key, text);

    // Tensors

    /// <summary>The tensor of a name; null where there is none.</summary>
    internal Tensor? Find(string name)
    {
        if (!_names.Contains(name))
        {
            return null;
        }
        Tensor real = _file[name];
        string device = _host.Contains(name) ? "cpu" : _device;
        if (!_complex.Contains(name))
        {
            return ThroughArray(real).To(device: device);
        }
        if (real.DType == DType.Float64)
        {
            Complex[] elements = MemoryMarshal.Cast<double, Complex>(real.ToArray<double>()).ToArray();
            return Made<Complex>(elements, [.. real.Shape.SkipLast(1)]).To(device: device);
        }
        return Operators.Call("aten::view_as_complex", ThroughArray(real)).Tensor().To(device: device);
    }

    internal Tensor Tensor(string name) =>
        Find(name) ?? throw new ProtocolException($"the request lacks the tensor {name}");

    internal byte[] Bytes(string name) => _file[name].ToArray<byte>();

    internal void Put(string name, Tensor tensor)
    {
        Tensor real = tensor.To(device: "cpu");
        if (tensor.DType == DType.Complex128)
        {
            Complex[] elements = Resolved(real).ToArray<Complex>();
            double[] parts = MemoryMarshal.Cast<Complex, double>(elements).ToArray();
            _file.Add(name, Made<double>(parts, [.. real.Shape, 2]));
            _complex.Add(name);
            return;
        }
        if (tensor.DType == DType.Complex64)
        {
            real = Operators.Call("aten::view_as_real", Resolved(real)).Tensor();
            _complex.Add(name);
        }
        _file.Add(name, ThroughArray(real));
    }

    private static Tensor Resolved(Tensor tensor) => Operators.Call("aten::resolve_conj", tensor).Tensor();

    /// <summary>Copies numbers: reads them into an array and makes it a tensor again.</summary>
    private static Tensor ThroughArray(Tensor tensor)
    {
        return tensor.DType switch
        {
            DType.Float64 => Copy<double>(),
            DType.Float32 => Copy<float>(),
            DType.Float16 => Copy<Half>(),
            DType.Int64 => Copy<long>(),
            DType.Int32 => Copy<int>(),
            DType.Int16 => Copy<short>(),
            DType.Int8 => Copy<sbyte>(),
            DType.UInt8 => Copy<byte>(),
            DType.Bool => Copy<bool>(),
            _ => tensor, // types without an array
        };

        Tensor Copy<T>()
            where T : unmanaged
            => Made<T>(tensor.ToArray<T>(), [.. tensor.Shape]);
    }

    /// <summary>The tensor in a shape without dimensions, for which the face makes one of size 1.</summary>
    internal static Tensor Shaped(Tensor tensor, IReadOnlyList<long> shape) =>
        shape.Count > 0 ? tensor : Operators.Call("aten::reshape", tensor, Array.Empty<long>()).Tensor();

    private static Tensor Made<T>(T[] elements, long[] shape)
        where T : unmanaged
        => shape.Length == 0 ? Addend.Tensor.Scalar(elements[0]) : Addend.Tensor.From(elements, shape);
}
