using System.Collections;
using System.Globalization;
using System.Runtime.CompilerServices;
using System.Text.Json.Nodes;
using Addend.Native;

namespace Addend;

/// <summary>Arguments that are more than tensors, taken apart: their tensors, and how these make up the
/// arguments.</summary>
internal sealed class Structure
{
    // Limit of nesting: an object that contains itself ends here, and not by exhausting the stack, which would end the
    // process. The C interface allows fewer levels.
    private const int Deepest = 256;

    private readonly List<KeyValuePair<string?, Input>> _inputs = [];

    internal Structure(object?[] arguments) => Json = ListOf(arguments, "", 0).ToJsonString();

    internal Structure(IEnumerable<KeyValuePair<string, object?>> arguments)
    {
        var described = new JsonObject();
        foreach ((string name, object? value) in arguments)
        {
            described[Text.Checked(name, nameof(arguments))] = Describe(value, name, 0);
        }
        Json = described.ToJsonString();
    }

    /// <summary>The arguments in the form that the C interface takes.</summary>
    internal string Json { get; }

    /// <summary>The inputs by their paths, which serve only as names.</summary>
    internal IReadOnlyList<KeyValuePair<string?, Input>> Inputs => _inputs;

    private JsonNode? Describe(object? value, string path, int depth)
    {
        if (depth > Deepest)
        {
            throw new ArgumentException($"arguments are nested too deeply: {path[..20]}...", nameof(value));
        }
        switch (value)
        {
            case null:
                return null;
            case Tensor tensor:
                return Leaf(new Input(tensor), path);
            case Input input:
                return Leaf(input, path);
            case bool flag:
                return JsonValue.Create(flag);
            case string text:
                return JsonValue.Create(Text.Checked(text, path));
            case sbyte or byte or short or ushort or int or uint or long:
                return JsonValue.Create(Convert.ToInt64(value, CultureInfo.InvariantCulture));
            case Half or float or double:
                return Number(value is Half half ? (double)half : Convert.ToDouble(value, CultureInfo.InvariantCulture));
            case ITuple tuple:
                var elements = new object?[tuple.Length];
                for (int k = 0; k < elements.Length; k++)
                {
                    elements[k] = tuple[k];
                }
                return new JsonObject { ["tuple"] = ListOf(elements, path, depth + 1) };
            case IDictionary map:
                return DictionaryOf(map, path, depth + 1);
            case Array { Rank: > 1 } array:
                throw new ArgumentException(
                    $"{path} is an array of {array.Rank} dimensions: pass Tensor.From(array) for a tensor of its shape, or lists"
                        + " in a list",
                    nameof(value));
            case IEnumerable list:
                JsonArray listed = ListOf(list, path, depth + 1);
                return OfTensorsIfEmpty(new JsonObject { ["list"] = listed }, listed.Count);
            default:
                throw new ArgumentException(
                    $"models take no {value.GetType()} as {path}: pass an Input, Tensor, number, bool, string, null, or a"
                        + " tuple, list or dictionary of these",
                    nameof(value));
        }
    }

    private JsonObject DictionaryOf(IDictionary map, string path, int depth)
    {
        var described = new JsonObject();
        foreach (DictionaryEntry entry in map)
        {
            if (entry.Key is not string key)
            {
                throw new ArgumentException($"the keys of {path} have to be texts, not {entry.Key}", nameof(map));
            }
            described[Text.Checked(key, path)] = Describe(entry.Value, $"{path}.{key}", depth);
        }
        return OfTensorsIfEmpty(new JsonObject { ["dict"] = described }, described.Count);
    }

    private JsonArray ListOf(IEnumerable list, string path, int depth)
    {
        var described = new JsonArray();
        foreach (object? element in list)
        {
            string inner = described.Count.ToString(CultureInfo.InvariantCulture);
            described.Add(Describe(element, path.Length == 0 ? inner : $"{path}.{inner}", depth));
        }
        return described;
    }

    private JsonObject Leaf(Input input, string path)
    {
        ArgumentNullException.ThrowIfNull(input.Value);
        _inputs.Add(KeyValuePair.Create<string?, Input>(path, input));
        return new JsonObject { ["tensor"] = _inputs.Count - 1 };
    }

    private static JsonObject OfTensorsIfEmpty(JsonObject container, int count)
    {
        if (count == 0)
        {
            container["type"] = "Tensor";
        }
        return container;
    }

    private static JsonNode Number(double number)
    {
        if (!double.IsFinite(number))
        {
            return new JsonObject { ["float"] = double.IsNaN(number) ? "nan" : number > 0 ? "inf" : "-inf" };
        }
        string text = number.ToString("R", CultureInfo.InvariantCulture);
        // A whole number keeps its point: without, it would be an integer.
        return JsonNode.Parse(text.All(c => c == '-' || char.IsAsciiDigit(c)) ? text + ".0" : text)!;
    }
}
