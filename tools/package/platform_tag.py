"""The platform tag that is true for a wheel, from what its libraries need (PEP 600)."""

import elf

# Libraries that every Linux system of a level has: no other may be needed from outside of the wheel ...
_SYSTEM = {
    "ld-linux-aarch64.so.1",
    "ld-linux-x86-64.so.2",
    "libatomic.so.1",
    "libc.so.6",
    "libdl.so.2",
    "libgcc_s.so.1",
    "libm.so.6",
    "libpthread.so.0",
    "librt.so.1",
    "libstdc++.so.6",
}
# ... except those that the wheel of PyTorch brings, which such a wheel requires. A distribution's own have a version
# in their names.
_TORCH = {"libc10.so", "libtorch.so", "libtorch_cpu.so"}
# glibc -> the newest libstdc++ (GLIBCXX) that a system with this glibc is sure to have.
_LEVELS = {
    (2, 17): (3, 4, 19),
    (2, 28): (3, 4, 24),
    (2, 31): (3, 4, 28),
    (2, 34): (3, 4, 29),
    (2, 35): (3, 4, 30),
    (2, 39): (3, 4, 33),
}


def platform_tag(platform, libraries):
    """(tag, whether PyTorch's wheel is required) for libraries: their paths.

    `platform` is sysconfig.get_platform(), such as "linux-x86_64". Without a level that is true for all libraries, the
    tag is that of this kind of machine, which no index takes.
    """
    described = [elf.describe(path) for path in libraries]
    implementations = [each for each in described if (each[0] or "").startswith("libaddend_torch")]
    if len(implementations) < 2:
        return _tag_of_all(platform, described)
    # One of them is opened, and the others need not be loadable.
    others = [each for each in described if each not in implementations]
    tags = [_tag_of_all(platform, others + [each]) for each in implementations]
    return min(tags, key=lambda tag: (not tag[0].startswith("manylinux"), tag))


def _tag_of_all(platform, described):
    own = {soname for soname, _, _ in described}
    needed = {name for _, needs, _ in described for name in needs} - own
    versions = {}
    for _, _, each in described:
        for family, number in each.items():
            versions[family] = max(versions.get(family, ()), number)
    return tag_of(platform, needed, versions)


def tag_of(platform, needed, versions):
    """The result of `platform_tag` for SONAMEs that are needed from outside and the highest version of each family."""
    plain = platform.replace("-", "_").replace(".", "_")
    if not platform.startswith("linux-") or needed - _SYSTEM - _TORCH:
        return plain, False
    for glibc, glibcxx in sorted(_LEVELS.items()):
        if versions.get("GLIBC", ()) <= glibc and versions.get("GLIBCXX", ()) <= glibcxx:
            machine = plain[len("linux_") :]
            return "manylinux_%d_%d_%s" % (glibc + (machine,)), bool(needed & _TORCH)
    return plain, False
