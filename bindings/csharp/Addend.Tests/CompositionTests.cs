namespace Addend.Tests;

public sealed class CompositionTests
{
    [Fact]
    public void Diagonal_splits_along_dimensions()
    {
        using Tensor value = Tensor.From(new[] { 1.0, 2.0, 4.0 });
        using Tensor baseline = Tensor.From(new[] { 0.5, 2.0, 1.0 });
        using Composition x = Composition.Diagonal(value, 0, baseline);
        Assert.Equal(3, x.Numc);
        Assert.Equal([3L], x.Shape);
        Assert.Equal(DType.Float64, x.DType);
        Assert.Equal("cpu", x.Device);
        Expect([0.5, 0, 0, 0, 0, 0, 0, 0, 3], x.Components());
        Expect([0.5, 2, 1], x.Reference());
        Expect([0, 0, 0], x.Leftover());
        Expect([0.5, 2, 1], x.Residual());
        Expect([1, 2, 4], x.Recovery());
        Expect([1, 2, 4], x.Value());
    }

    [Fact]
    public void Without_dimensions_the_whole_value_is_one_component()
    {
        using Tensor value = Tensor.From(new[] { 1.0, 2.0 });
        using Composition x = Composition.Diagonal(value);
        Assert.Equal(1, x.Numc);
        Expect([1, 2], x.Component(0));
    }

    [Fact]
    public void Offset_and_numc_make_room_for_others()
    {
        using Tensor value = Tensor.From(new[] { 1.0, 2.0 });
        using Composition x = Composition.Diagonal(value, 0, offset: 1, numc: 4);
        Expect([0, 0, 1, 0, 0, 2, 0, 0], x.Components());
    }

    [Fact]
    public void Labels_group_elements()
    {
        using Tensor value = Tensor.From(new[] { 1.0, 2.0, 4.0, 8.0 });
        using Tensor labels = Tensor.From(new[] { 1L, 0L, 1L, -1L });
        using Composition x = Composition.FromLabels(value, labels);
        Expect([0, 2, 0, 0, 1, 0, 4, 0], x.Components());
        Expect([0, 0, 0, 8], x.Reference());
        Expect([1, 2, 4, 8], x.Recovery());
    }

    [Fact]
    public void Parts_are_taken_as_given()
    {
        using Tensor components = Tensor.From(new double[,] { { 1, 2 }, { 3, 4 } });
        using Tensor reference = Tensor.From(new[] { 10.0, 20.0 });
        using Tensor leftover = Tensor.From(new[] { 0.5, 0.25 });
        using Composition x = Composition.FromParts(components, reference, leftover);
        Expect([10.5, 20.25], x.Residual());
        Expect([14.5, 26.25], x.Recovery());
        using Composition without = Composition.FromParts(components);
        Expect([0, 0], without.Residual());
    }

    [Fact]
    public void Components_can_be_picked()
    {
        using Tensor components = Tensor.From(new double[,] { { 1, 2 }, { 3, 4 }, { 5, 6 } });
        using Tensor reference = Tensor.From(new[] { 10.0, 20.0 });
        using Composition x = Composition.FromParts(components, reference);
        using Composition some = x.SelectComponents([2, -3]);
        Expect([5, 6, 1, 2], some.Components());
        Expect([10, 20], some.Residual());
        using Composition alone = x.SelectComponents([1], withResidual: false);
        Expect([3, 4], alone.Recovery());
        Expect([3, 4], x.Component(1));
    }

    [Fact]
    public void Says_which_component_is_not_there()
    {
        using Tensor value = Tensor.From(new[] { 1.0, 2.0 });
        using Composition x = Composition.Diagonal(value, 0);
        ArgumentOutOfRangeException thrown = Assert.Throws<ArgumentOutOfRangeException>(() => x.Component(2));
        Assert.Equal(ErrorCode.OutOfRange, Samples.CodeOf(thrown));
        Assert.Contains("2", thrown.Message);
        Samples.Refuses(() => x.SelectComponents([5]));
    }

    [Fact]
    public void Explanations_are_sums()
    {
        using Tensor components = Tensor.From(new double[,] { { 1, 0 }, { -3, 4 }, { 2, 1 } });
        using Tensor reference = Tensor.From(new[] { 10.0, -1.0 });
        using Tensor leftover = Tensor.From(new[] { 0.5, 0.0 });
        using Composition x = Composition.FromParts(components, reference, leftover);
        Explanation explanation = x.Explain(Target.At(0));
        Assert.Equal([1, -3, 2], explanation.Contributions.Select(c => c.Value));
        Assert.Equal([1L, 2L, 0L], explanation.Ranking.Select(c => c.Component));
        Assert.Equal([-3, 2], explanation.Top(2).Select(c => c.Value));
        Assert.Equal(10, explanation.Reference);
        Assert.Equal(0.5, explanation.Leftover);
        Assert.Equal(10.5, explanation.Recovery);
        Assert.Equal(16.5, explanation.Mass);
        Assert.Equal("[0]", explanation.Target);
        Assert.Equal(x.Explain("0").Contributions, explanation.Contributions);

        Explanation difference = x.Explain(Target.At(1).Minus(Target.At(0)));
        Assert.Equal([-1, 7, -1], difference.Contributions.Select(c => c.Value));
        Assert.Equal("[0]", x.Explain().Target);
        Samples.Refuses(() => x.Explain(Target.At(2)));
        Assert.Equal("()", Target.At().ToString());
        Samples.Refuses(() => x.Explain("which?"));
    }

    [Fact]
    public void Refuses_parts_that_do_not_fit()
    {
        using Tensor components = Tensor.From(new double[,] { { 1, 2 }, { 3, 4 } });
        using Tensor reference = Tensor.From(new[] { 1.0, 2.0, 3.0 });
        Assert.Throws<ArgumentException>(() => Composition.FromParts(components, reference));
        Assert.Throws<ArgumentException>(() => Composition.Diagonal(reference, 7));
        Assert.Throws<ArgumentException>(() => Composition.FromLabels(reference, components));
        Assert.Throws<ArgumentNullException>(() => Composition.FromParts(null!));
    }

    [Fact]
    public void Prints_its_components_and_its_residual()
    {
        using Tensor value = Tensor.From(new[] { 1.0, 2.0 });
        using Composition x = Composition.Diagonal(value, 0);
        Assert.Contains("composition 1:", x.ToString());
        Assert.Contains("residual:", x.ToString());
    }

    [Fact]
    public void Disposed_compositions_say_so()
    {
        using Tensor value = Tensor.From(new[] { 1.0, 2.0 });
        Composition x = Composition.Diagonal(value, 0);
        x.Dispose();
        Assert.Throws<ObjectDisposedException>(() => x.Numc);
        Assert.Throws<ObjectDisposedException>(() => x.Shape);
        Assert.Throws<ObjectDisposedException>(() => x.Recovery());
        Assert.Throws<ObjectDisposedException>(() => x.Explain());
        Assert.Throws<ObjectDisposedException>(() => x.Softmax(0));
        Assert.Throws<ObjectDisposedException>(() => x + 1);
        Assert.Throws<ObjectDisposedException>(() => x.ToString());
    }

    internal static void Expect(double[] expected, Tensor part)
    {
        using (part)
        {
            Assert.Equal(expected, part.ToArray<double>());
        }
    }
}
