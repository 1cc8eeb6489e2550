"""@nlohmann_json: nlohmann/json as installed on this machine, or under NLOHMANN_JSON_HOME."""

load("//third_party:repositories.bzl", "installed_library")

def repo(declare):
    installed_library(
        declare,
        name = "nlohmann_json",
        what = "nlohmann/json",
        package = "nlohmann-json3-dev",
        override = "NLOHMANN_JSON_HOME",
        header = "nlohmann/json.hpp",
        libraries = {"json": []},
    )
