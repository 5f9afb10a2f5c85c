"""Creates plugins in Python for tests."""

from minitensor.plugins import CustomPlugin, PluginInfo, VersionInfo

import minitensor as mt


def built(name, factor=2.0):
    return mt.CustomOpBuilder(name, 1).forward(lambda x: x * factor).build()


def plugin(name="math", ops=(), initialize=None, cleanup=None, **versions):
    made = CustomPlugin(PluginInfo(name, VersionInfo(1, 0, 0), **versions))
    made.set_custom_operations_fn(lambda: [built(op) if isinstance(op, str) else op for op in ops])
    if initialize:
        made.set_initialize_fn(initialize)
    if cleanup:
        made.set_cleanup_fn(cleanup)
    return made
