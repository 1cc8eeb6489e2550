"""switch: an option of the command line, --//package:name, and its config_setting."""

def _bool_flag_impl(_ctx):
    return []

_bool_flag = rule(
    implementation = _bool_flag_impl,
    build_setting = config.bool(flag = True),
)

def switch(name, setting):
    """--//package:<name>, off by default, and what select() asks for it.

    Args:
      name: the option's.
      setting: name of the config_setting that holds where the option is on.
    """
    _bool_flag(
        name = name,
        build_setting_default = False,
        visibility = ["//visibility:public"],
    )
    native.config_setting(
        name = setting,
        flag_values = {":" + name: "True"},
        visibility = ["//visibility:public"],
    )
