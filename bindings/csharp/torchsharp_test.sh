#!/usr/bin/env bash
# torchsharp_test.sh DIST PROJECT...: packs Addend.TorchSharp against the package in the folder DIST and TorchSharp's own,
# which is fetched from where .NET looks by default. Nothing runs: TorchSharp's LibTorch is not the one that Addend is built for here.
set -euo pipefail

dist=$PWD/$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

for file in "$@"; do
  mkdir -p "$folder/$(dirname "$file")"
  cp -L "$file" "$folder/$file"
done
cd "$folder/bindings/csharp/Addend.TorchSharp"
cat >nuget.config <<END
<configuration>
  <packageSources>
    <add key="built" value="$dist" />
  </packageSources>
  <packageSourceMapping>
    <packageSource key="built"><package pattern="Addend" /></packageSource>
    <packageSource key="nuget.org"><package pattern="*" /></packageSource>
  </packageSourceMapping>
</configuration>
END
export HOME=$folder/home DOTNET_CLI_HOME=$folder/home NUGET_PACKAGES=$folder/packages
export DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_NOLOGO=1 MSBUILDDISABLENODEREUSE=1 DOTNET_CLI_USE_MSBUILD_SERVER=0

# A copy of nuget.org may lack the oldest versions of what TorchSharp needs (NU1603), and has no list of known flaws.
"$DOTNET" pack --output out -p:NuGetAudit=false -p:NoWarn=NU1603 >log 2>&1 || {
  cat log >&2
  exit 1
}
cd out
unzip -p Addend.TorchSharp.*.nupkg Addend.TorchSharp.nuspec >nuspec
grep -q '<dependency id="Addend" version="[0-9.]*"' nuspec
grep -q '<dependency id="TorchSharp" version="[0-9.]*"' nuspec
unzip -l Addend.TorchSharp.*.nupkg | grep -q 'lib/net8.0/Addend.TorchSharp.xml'
echo "ok: $(ls Addend.TorchSharp.*.nupkg) needs $(grep -o 'id="[A-Za-z]*" version="[0-9.]*"' nuspec | tr '\n' ' ')"
