global using global::TorchSharp;
global using Xunit;
global using Modules = global::TorchSharp.Modules;
global using nn = global::TorchSharp.torch.nn;
