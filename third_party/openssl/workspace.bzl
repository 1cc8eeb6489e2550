"""@openssl: OpenSSL as installed on this machine, or under OPENSSL_HOME."""

load("//third_party:repositories.bzl", "installed_library")

def repo(declare):
    installed_library(
        declare,
        name = "openssl",
        what = "OpenSSL",
        package = "libssl-dev",
        override = "OPENSSL_HOME",
        header = "openssl/evp.h",
        libraries = {"crypto": ["crypto"]},
    )
