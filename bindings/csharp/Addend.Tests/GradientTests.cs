namespace Addend.Tests;

public sealed class GradientTests : IDisposable
{
    private static readonly double[,] Components = { { 0.3, -0.8 }, { 1.1, 0.4 } };
    private static readonly double[] Reference = [0.5, -0.2];

    private readonly Scope _scope = new();

    public void Dispose() => _scope.Dispose();

    [Fact]
    public void Of_a_linear_function_is_its_slope()
    {
        Composition x = InGraph(Components, Reference);
        Composition y = x * 3;
        Composition gradient = y.Grad(Ones(), x);
        CompositionTests.Expect([3, 3, 3, 3], gradient.Components());
        CompositionTests.Expect([3, 3], gradient.Reference());
    }

    // A product moves components by coefficients that depend on the parts: the gradient has to pass through both.
    [Fact]
    public void Gradients_are_those_of_finite_differences()
    {
        Composition x = InGraph(Components, Reference);
        Composition y = x * x;
        Composition weights = Composition.FromParts(
            Tensor.From(new double[,] { { 1, 2 }, { -1, 0.5 } }), Tensor.From(new[] { 0.25, -2 }));
        double[] gradient = y.Grad(weights, x).Components().ToArray<double>();
        const double Step = 1e-6;
        for (int k = 0; k < 4; k++)
        {
            double above = Weighted(Moved(k, Step));
            double below = Weighted(Moved(k, -Step));
            Samples.Close((above - below) / (2 * Step), gradient[k], 1e-8);
        }

        double Weighted(double[,] components)
        {
            using Composition moved = InGraph(components, Reference);
            using Composition product = moved * moved;
            double[] parts = product.Components().ToArray<double>();
            double[] start = product.Reference().ToArray<double>();
            return parts[0] + (2 * parts[1]) - parts[2] + (0.5 * parts[3]) + (0.25 * start[0]) - (2 * start[1]);
        }
    }

    [Fact]
    public void Gradients_need_a_graph()
    {
        Composition x = InGraph(Components, Reference);
        Composition stranger = InGraph(Components, Reference);
        Composition y = x * 2;
        Assert.Throws<InvalidOperationException>(() => y.Grad(Ones(), stranger));
        Composition outside = Composition.FromParts(Tensor.From(Components), Tensor.From(Reference));
        Assert.Throws<InvalidOperationException>(() => (outside * 2).Grad(Ones(), outside));
        Assert.Throws<ArgumentNullException>(() => y.Grad(null!, x));
    }

    private static Composition InGraph(double[,] components, double[] reference) =>
        Composition.FromParts(Tensor.From(components), Tensor.From(reference), inGraph: true);

    private static Composition Ones() =>
        Composition.FromParts(Tensor.From(new double[,] { { 1, 1 }, { 1, 1 } }), Tensor.From(new double[] { 1, 1 }));

    private static double[,] Moved(int element, double step)
    {
        var moved = (double[,])Components.Clone();
        moved[element / 2, element % 2] += step;
        return moved;
    }
}
