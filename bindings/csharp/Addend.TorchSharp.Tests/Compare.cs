using System.Runtime.InteropServices;
using TorchTensor = global::TorchSharp.torch.Tensor;

namespace Addend.TorchSharp.Tests;

/// <summary>Comparisons of numbers for tests.</summary>
internal static class Compare
{
    internal static float[] Floats(this TorchTensor tensor)
    {
        using TorchTensor plain = tensor.detach().contiguous();
        return [.. plain.data<float>()];
    }

    internal static float[] Floats(this Tensor tensor) => tensor.ToArray<float>();

    /// <summary>Numbers of any width: what ids contributed is of float64.</summary>
    internal static double[] Doubles(this Tensor tensor)
    {
        using Tensor wide = tensor.To(DType.Float64);
        return wide.ToArray<double>();
    }

    internal static void SameBits(double[] expected, double[] actual)
    {
        Assert.NotEmpty(expected);
        Assert.Equal(MemoryMarshal.Cast<double, long>(expected).ToArray(), MemoryMarshal.Cast<double, long>(actual).ToArray());
    }

    /// <summary>Fails unless the numbers are equal to the last bit; empty arrays fail too.</summary>
    internal static void SameBits(float[] expected, float[] actual)
    {
        Assert.NotEmpty(expected);
        Assert.Equal(MemoryMarshal.Cast<float, int>(expected).ToArray(), MemoryMarshal.Cast<float, int>(actual).ToArray());
    }

    internal static void Close(IReadOnlyList<double> expected, IReadOnlyList<double> actual, double within)
    {
        Assert.NotEmpty(expected);
        Assert.Equal(expected.Count, actual.Count);
        for (int k = 0; k < expected.Count; k++)
        {
            Assert.InRange(actual[k], expected[k] - within, expected[k] + within);
        }
    }

    internal static void Close(IReadOnlyList<float> expected, IReadOnlyList<float> actual, double within)
    {
        Assert.NotEmpty(expected);
        Assert.Equal(expected.Count, actual.Count);
        for (int k = 0; k < expected.Count; k++)
        {
            Assert.InRange(actual[k], expected[k] - within, expected[k] + within);
        }
    }

    /// <summary>The composition is that of these numbers: its value has their bits, and its parts sum to them.</summary>
    internal static void IsOf(this Composition composition, float[] computed, double within = 1e-5)
    {
        SameBits(computed, composition.Value().Floats());
        Close(computed, composition.Recovery().Floats(), within);
        float[] reference = composition.Reference().Floats();
        float[] leftover = composition.Leftover().Floats();
        float[] components = composition.Components().Floats();
        Assert.Equal(computed.Length * composition.Numc, components.Length);
        var sums = new double[computed.Length];
        for (int k = 0; k < components.Length; k++)
        {
            sums[k % computed.Length] += components[k];
        }
        Close(computed, [.. sums.Select((sum, k) => (float)(sum + reference[k] + leftover[k]))], within);
    }
}
