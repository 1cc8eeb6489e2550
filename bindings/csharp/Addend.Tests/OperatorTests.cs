namespace Addend.Tests;

public sealed class OperatorTests : IDisposable
{
    private readonly Scope _scope = new();
    private readonly Tensor _weights = Tensor.From(new[] { 4.0, 5.0 });
    private readonly Composition _x;

    // Components [1, 0] and [0, 2], reference [0.5, 1]: the value is [1.5, 3].
    public OperatorTests() =>
        _x = Composition.FromParts(
            Tensor.From(new double[,] { { 1, 0 }, { 0, 2 } }), Tensor.From(new[] { 0.5, 1.0 }));

    public void Dispose() => _scope.Dispose();

    [Fact]
    public void Numbers_on_either_side()
    {
        Expect(_x + 1, components: [1, 0, 0, 2], reference: [1.5, 2]);
        Expect(1 + _x, components: [1, 0, 0, 2], reference: [1.5, 2]);
        Expect(_x - 1, components: [1, 0, 0, 2], reference: [-0.5, 0]);
        Expect(1 - _x, components: [-1, 0, 0, -2], reference: [0.5, 0]);
        Expect(_x * 2, components: [2, 0, 0, 4], reference: [1, 2]);
        Expect(2.0 * _x, components: [2, 0, 0, 4], reference: [1, 2]);
        Expect(_x / 2, components: [0.5, 0, 0, 1], reference: [0.25, 0.5]);
        Expect(-_x, components: [-1, 0, 0, -2], reference: [-0.5, -1]);
        // 3 / x moves from 6 to 2 and from 3 to 1, each by its one component.
        Expect(3 / _x, components: [-4, 0, 0, -2], reference: [6, 3], within: 1e-12);
    }

    [Fact]
    public void Tensors_on_either_side()
    {
        Expect(_x + _weights, components: [1, 0, 0, 2], reference: [4.5, 6]);
        Expect(_weights + _x, components: [1, 0, 0, 2], reference: [4.5, 6]);
        Expect(_x - _weights, components: [1, 0, 0, 2], reference: [-3.5, -4]);
        Expect(_weights - _x, components: [-1, 0, 0, -2], reference: [3.5, 4]);
        Expect(_x * _weights, components: [4, 0, 0, 10], reference: [2, 5]);
        Expect(_weights * _x, components: [4, 0, 0, 10], reference: [2, 5]);
        Expect(_x / _weights, components: [0.25, 0, 0, 0.4], reference: [0.125, 0.2], within: 1e-15);
        Expect(_weights / _x, components: [4 / 1.5 - 8, 0, 0, 5.0 / 3 - 5], reference: [8, 5], within: 1e-12);
    }

    [Fact]
    public void Compositions_with_each_other()
    {
        Expect(_x + _x, components: [2, 0, 0, 4], reference: [1, 2]);
        Expect(_x - _x, components: [0, 0, 0, 0], reference: [0, 0]);
        // x * x moves from 0.25 to 2.25 and from 1 to 9.
        Expect(_x * _x, components: [2, 0, 0, 8], reference: [0.25, 1]);
        Expect(_x / _x, components: [0, 0, 0, 0], reference: [1, 1], within: 1e-12);
    }

    [Fact]
    public void Missing_operands_are_named()
    {
        Composition none = null!;
        Assert.Throws<ArgumentNullException>(() => none + _x);
        Assert.Throws<ArgumentNullException>(() => _x + none);
        Assert.Throws<ArgumentNullException>(() => -none);
        Assert.Throws<ArgumentException>(() => _x.Add(default(Operand)));
    }

    [Fact]
    public void Operators_are_called_by_name()
    {
        using Results results = Operators.Call("aten::add", _x, _weights, Argument.Named("alpha", 2));
        Assert.Equal(1, results.Count);
        Assert.Equal(ResultKind.Composition, results.Kind(0));
        Expect(results.Composition(), components: [1, 0, 0, 2], reference: [8.5, 11]);
    }

    [Fact]
    public void Calls_take_lists_texts_and_None()
    {
        using Results joined = Operators.Call("aten::cat", new Operand[] { _x, _weights }, 0);
        Expect(joined.Composition(), components: [1, 0, 0, 0, 0, 2, 0, 0], reference: [0.5, 1, 4, 5]);
        using Results product = Operators.Call("aten::einsum", "i,i->", new Operand[] { _x, _weights });
        Expect(product.Composition(), components: [4, 10], reference: [7]);
        using Results bounded = Operators.Call("aten::clamp", _x, Argument.None, 2);
        Expect(bounded.Composition(), components: [1, 0, 0, 1], reference: [0.5, 1], within: 1e-12);
        using Results sum = Operators.Call("aten::sum.dim_IntList", _x, new long[] { 0 }, true, Argument.Named("dtype", DType.Float64));
        Expect(sum.Composition(), components: [1, 2], reference: [1.5]);
    }

    [Fact]
    public void Without_compositions_operators_just_run()
    {
        using Results results = Operators.Call("aten::mul", _weights, 3);
        Assert.Equal(ResultKind.Tensor, results.Kind(0));
        CompositionTests.Expect([12, 15], results.Tensor());
        ArgumentException thrown = Assert.Throws<ArgumentException>(() => results.Composition());
        Assert.Equal(ErrorCode.InvalidArgument, Samples.CodeOf(thrown));
    }

    [Fact]
    public void Wrong_calls_are_explained()
    {
        Assert.Contains("aten::no_such", Assert.Throws<KeyNotFoundException>(() => Operators.Call("aten::no_such", _x)).Message);
        Assert.Throws<ArgumentException>(() => Operators.Call("aten::relu", _x, 1, 2, 3));
        Assert.Throws<ArgumentException>(() => Operators.Call("aten::add.Tensor", _x, "text"));
        Assert.Throws<ArgumentException>(() => Operators.Call("aten::relu", Argument.Named("no_such", _x)));
        Assert.Throws<ArgumentNullException>(() => Operators.Call(null!));
        Assert.Throws<ArgumentNullException>(() => Operators.Call("aten::relu", (Composition)null!));
    }

    [Fact]
    public void An_operator_without_a_rule_is_named_and_placed()
    {
        HashSet<string> ruled = [.. Operators.All.Select(op => op.Name)];
        Assert.DoesNotContain("aten::histc", ruled);
        NotSupportedException thrown = Assert.Throws<NotSupportedException>(() => Operators.Call("aten::histc", _x));
        Assert.Contains("aten::histc", thrown.Message);
        AddendException cause = Assert.IsType<AddendException>(thrown.InnerException);
        Assert.Equal(ErrorCode.Unimplemented, cause.Code);
        Assert.StartsWith("aten::histc", cause.Position!.Op);
    }

    [Fact]
    public void Memory_that_runs_out_is_an_error_like_others()
    {
        InsufficientMemoryException thrown = Assert.Throws<InsufficientMemoryException>(
            () => Operators.Call("aten::full", new[] { 1L << 50 }, 1.0));
        Assert.Equal(ErrorCode.ResourceExhausted, Samples.CodeOf(thrown));
    }

    [Fact]
    public void Operators_follow_their_context()
    {
        using var frozen = new Context(new Policy { Nonlinearity = "none" });
        // exp passes no component on: all of its move is leftover.
        using Composition y = _x.Exp(frozen);
        CompositionTests.Expect([0, 0, 0, 0], y.Components());
        using Composition faithful = _x.Exp();
        Expect(
            faithful,
            components: [Math.Exp(1.5) - Math.Exp(0.5), 0, 0, Math.Exp(3) - Math.Exp(1)],
            reference: [Math.Exp(0.5), Math.Exp(1)],
            within: 1e-13);
    }

    [Fact]
    public void Methods_leave_out_what_is_not_given()
    {
        Expect(_x.Add(_weights, alpha: 2), components: [1, 0, 0, 2], reference: [8.5, 11]);
        Expect(_x.Add(1), components: [1, 0, 0, 2], reference: [1.5, 2]);
        Expect(_x.LeakyRelu(), components: [1, 0, 0, 2], reference: [0.5, 1]);
        Expect(_x.Clamp(max: 2), components: [1, 0, 0, 1], reference: [0.5, 1], within: 1e-12);
        Expect(_x.Clamp(2), components: [0, 0, 0, 1], reference: [2, 2], within: 1e-12);
        Expect(_x.Sum(0, keepdim: true), components: [1, 2], reference: [1.5]);
        Expect(_x.Sum(), components: [1, 2], reference: [1.5]);
        Expect(_x.Unsqueeze(0).Sum([0, 1]), components: [1, 2], reference: [1.5]);
        Expect(_x.Reshape([2, 1]), components: [1, 0, 0, 2], reference: [0.5, 1]);
    }

    [Fact]
    public void Methods_give_pairs_lists_and_tensors()
    {
        (Composition values, Tensor indices) = _x.Max(0);
        Assert.Equal([1L], indices.ToArray<long>());
        // The second element wins all along the line from the reference.
        Expect(values, components: [0, 2], reference: [1]);
        IReadOnlyList<Composition> pieces = _x.Split(1);
        Assert.Equal(2, pieces.Count);
        Expect(pieces[1], components: [0, 2], reference: [1]);
        Assert.Equal([1L], _x.Argmax().ToArray<long>());
    }

    [Fact]
    public void Functions_begin_with_what_is_no_composition()
    {
        Expect(Composition.Cat([_weights, _x]), components: [0, 0, 1, 0, 0, 0, 0, 2], reference: [4, 5, 0.5, 1]);
        Expect(Composition.Stack([_x, _weights], 0), components: [1, 0, 0, 0, 0, 2, 0, 0], reference: [0.5, 1, 4, 5]);
        Tensor first = Tensor.From(new[] { true, false });
        Expect(Composition.Where(first, _x, _weights), components: [1, 0, 0, 0], reference: [0.5, 5]);
        Expect(Composition.Where(first, _x, 7), components: [1, 0, 0, 0], reference: [0.5, 7]);
        Expect(Composition.Einsum("i,i->i", [_x, _weights]), components: [4, 0, 0, 10], reference: [2, 5]);
    }

    [Fact]
    public void In_place_methods_put_their_result_into_the_object()
    {
        using Results before = Operators.Call("aten::mul", _x, 1);
        Composition same = before.Composition();
        Assert.Same(_x, _x.AddInPlace(1).MulInPlace(2));
        Expect(_x, components: [2, 0, 0, 4], reference: [3, 4]);
        Expect(same, components: [1, 0, 0, 2], reference: [0.5, 1]);
        Samples.Refuses(() => _x.AddInPlace(Tensor.From(new double[3])));
        Expect(_x, components: [2, 0, 0, 4], reference: [3, 4]);
    }

    [Fact]
    public void Recovery_is_the_value_after_a_chain()
    {
        Tensor weight = Tensor.From(new double[,] { { 1, -2 }, { 0.5, 3 }, { -1, 1 } });
        Composition y = _x.Linear(weight).Gelu().Softmax(-1);
        double[] logits = [.. new[] { 1.5 - 6, 0.75 + 9, -1.5 + 3 }.Select(Gelu)];
        double[] exponentials = [.. logits.Select(Math.Exp)];
        double[] recovery = y.Recovery().ToArray<double>();
        double[] value = y.Value().ToArray<double>();
        for (int k = 0; k < 3; k++)
        {
            Samples.Close(exponentials[k] / exponentials.Sum(), value[k], 1e-10);
            Samples.Close(value[k], recovery[k], 1e-12);
        }
    }

    [Fact]
    public void Shapley_values_share_a_product_equally()
    {
        // (a + b)^2 from nothing, a = 1 and b = 2: each gets its square and half of 2 a b.
        Composition sum = Composition.Diagonal(Tensor.From(new[] { 1.0, 2.0 }), 0).Sum();
        Expect(Operators.Shapley("aten::square", sum), components: [3, 6], reference: [0], within: 1e-12);
    }

    [Fact]
    public void Every_everyday_operator_has_its_method()
    {
        HashSet<string> methods = [.. typeof(Composition).GetMethods().Select(method => method.Name)];
        string[] lines = File.ReadAllLines(Samples.Runfile("core/composition/everyday_operators.txt"));
        string[] names = [.. lines
            .Where(line => line.StartsWith("aten::", StringComparison.Ordinal))
            .Select(line => line["aten::".Length..line.IndexOf('(', StringComparison.Ordinal)].Split('.')[0])
            .Distinct()];
        Assert.True(names.Length > 100);
        Assert.All(names, name => Assert.Contains(MethodName(name), methods));
    }

    [Fact]
    public void Registered_operators_are_listed()
    {
        Assert.True(Operators.All.Count > 300);
        OperatorInfo softmax = Operators.All.Single(op => op.Name == "aten::softmax");
        Assert.Equal("path", softmax.Kind, ignoreCase: true);
        Assert.Contains(softmax.Schemas, schema => schema.StartsWith("aten::softmax.int(", StringComparison.Ordinal));
    }

    private static string MethodName(string name)
    {
        string pascal = string.Concat(name.Split('_').Where(p => p.Length > 0).Select(p => char.ToUpperInvariant(p[0]) + p[1..]));
        return name.EndsWith('_') ? pascal + "InPlace" : pascal;
    }

    private static double Gelu(double x)
    {
        // erf by its integral, Simpson's rule with 2,000 pieces.
        double end = x / Math.Sqrt(2), step = end / 2000, sum = 1 + Math.Exp(-end * end);
        for (int k = 1; k < 2000; k++)
        {
            sum += (k % 2 == 0 ? 2 : 4) * Math.Exp(-(k * step) * (k * step));
        }
        return x * (1 + (2 / Math.Sqrt(Math.PI) * sum * step / 3)) / 2;
    }

    private static void Expect(Composition actual, double[] components, double[] reference, double within = 0)
    {
        double[] parts = actual.Components().ToArray<double>();
        double[] start = actual.Reference().ToArray<double>();
        Assert.Equal(components.Length, parts.Length);
        Assert.Equal(reference.Length, start.Length);
        for (int k = 0; k < components.Length; k++)
        {
            Samples.Close(components[k], parts[k], within);
        }
        for (int k = 0; k < reference.Length; k++)
        {
            Samples.Close(reference[k], start[k], within);
        }
    }
}
