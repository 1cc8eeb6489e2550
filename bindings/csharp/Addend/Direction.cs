namespace Addend;

/// <summary>Which way components are found.</summary>
public enum Direction
{
    /// <summary>Backward where there are few numbers and much to save, else forward.</summary>
    Auto,

    /// <summary>Every component goes through every operator.</summary>
    Forward,

    /// <summary>Components come back from the numbers that are asked for, while the sum of all goes forward and is checked
    /// after every operator.</summary>
    Backward,
}
