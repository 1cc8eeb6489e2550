namespace Addend;

/// <content>C#'s operators: compositions with compositions, tensors and numbers on either side.</content>
public sealed partial class Composition
{
#pragma warning disable CS1591, CA2225 // They mean what they mean for tensors; the methods have LibTorch's names.
    public static Composition operator -(Composition x) => Given(x).Neg();

    public static Composition operator +(Composition x, Composition y) => Given(x).Add(y);

    public static Composition operator +(Composition x, Tensor y) => Given(x).Add(y);

    public static Composition operator +(Tensor x, Composition y) => TensorFirst("aten::add.Tensor", x, y);

    public static Composition operator +(Composition x, Scalar y) => Given(x).Add(y);

    public static Composition operator +(Scalar x, Composition y) => Given(y).Add(x);

    public static Composition operator -(Composition x, Composition y) => Given(x).Sub(y);

    public static Composition operator -(Composition x, Tensor y) => Given(x).Sub(y);

    public static Composition operator -(Tensor x, Composition y) => TensorFirst("aten::sub.Tensor", x, y);

    public static Composition operator -(Composition x, Scalar y) => Given(x).Sub(y);

    public static Composition operator -(Scalar x, Composition y) => Given(y).Rsub(x);

    public static Composition operator *(Composition x, Composition y) => Given(x).Mul(y);

    public static Composition operator *(Composition x, Tensor y) => Given(x).Mul(y);

    public static Composition operator *(Tensor x, Composition y) => TensorFirst("aten::mul.Tensor", x, y);

    public static Composition operator *(Composition x, Scalar y) => Given(x).Mul(y);

    public static Composition operator *(Scalar x, Composition y) => Given(y).Mul(x);

    public static Composition operator /(Composition x, Composition y) => Given(x).Div(y);

    public static Composition operator /(Composition x, Tensor y) => Given(x).Div(y);

    public static Composition operator /(Tensor x, Composition y) => TensorFirst("aten::div.Tensor", x, y);

    public static Composition operator /(Composition x, Scalar y) => Given(x).Div(y);

    public static Composition operator /(Scalar x, Composition y)
    {
        // A number as a tensor that leaves dtypes as they are.
        using Tensor number = x.ToTensor(Given(y).DType, y.Device);
        return TensorFirst("aten::div.Tensor", number, y);
    }
#pragma warning restore CS1591, CA2225

    private static Composition TensorFirst(string op, Tensor x, Composition y) => CallOne(null, op, [x, y]);

    private static Composition Given(Composition operand)
    {
        ArgumentNullException.ThrowIfNull(operand);
        return operand;
    }
}
