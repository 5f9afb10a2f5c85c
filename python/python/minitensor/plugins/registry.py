"""The registry of plugins."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from .._minitensor import CustomOp, _register_ops, _unregister_ops, all_or_none
from .info import PluginInfo
from .lock import LOCK
from .log import debug, report
from .plugin import CustomPlugin
from .version import VersionInfo

__all__ = ["AlreadyLoaded", "PluginRegistry"]


class AlreadyLoaded(ValueError):
    """A plugin of the same name is already registered."""

    #: Whether the conflict is not the plugin itself, but another plugin that it tried to register.
    of_another = False


class _Entry(NamedTuple):
    plugin: CustomPlugin
    info: PluginInfo
    ops: list[CustomOp]
    #: Called after the plugin is unregistered.
    after_unregister: Callable[[], object]


class PluginRegistry:
    """A collection of plugins by name. Registering a plugin registers its ops atomically; unregistering removes them.

    >>> from minitensor import plugins
    >>> registry = plugins.PluginRegistry()
    >>> registry.register(plugins.PluginBuilder().name("noise").version(plugins.VersionInfo(1, 0, 0)).build())
    PluginInfo(name='noise', version=1.0.0)
    >>> "noise" in registry, len(registry)
    (True, 1)
    """

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._loading: set[str] = set()

    def register(self, plugin: CustomPlugin, ops: Iterable[CustomOp] = ()) -> PluginInfo:
        """Registers the ops of a plugin, then calls its `initialize`.

        Raises an error if the plugin does not support this version of minitensor. If any step fails, nothing stays
        registered. `ops` are ops that are already registered and now belong to the plugin.
        """
        if not isinstance(plugin, CustomPlugin):
            what = f"the class {plugin.__name__}; instantiate it" if isinstance(plugin, type) else type(plugin).__name__
            raise TypeError(f"a plugin must be a CustomPlugin, got {what}")
        if plugin.info is None:
            raise ValueError("the plugin has no info; pass a PluginInfo with a name and a version")
        return self.register_with_info(plugin, plugin.info, ops)

    def register_with_info(
        self,
        plugin: CustomPlugin,
        info: PluginInfo,
        ops: Iterable[CustomOp] = (),
        after_unregister: Callable[[], object] = lambda: None,
    ) -> PluginInfo:
        """Registers a plugin with metadata that completes its own."""
        name = info.name
        with LOCK:
            if name in self._entries or name in self._loading:
                before = self._entries[name].info if name in self._entries else info
                which = f"version {before.version}" + (f" from '{before.path}'" if before.path else "")
                raise AlreadyLoaded(f"plugin '{name}' is already registered as {which}; unload it first")
            info.check(VersionInfo.current())
            self._loading.add(name)
            try:
                with all_or_none() as made:
                    given = [_op(name, op) for op in plugin.custom_operations()]
                    _register(name, given)
                    plugin.initialize(self)
                    owned = [op for op in dict.fromkeys([*ops, *given, *made]) if op.is_registered]
                    _register(name, owned, name)
            except Exception as error:
                if isinstance(error, AlreadyLoaded):
                    error.of_another = True
                error.add_note(f"neither plugin '{name}' nor its ops were registered")
                debug("plugin '%s' failed: %s", name, error)
                raise
            finally:
                self._loading.remove(name)
            info = dataclasses.replace(info, ops=tuple(op.name for op in owned if not op.is_gradient))
            self._entries[name] = _Entry(plugin, info, owned, after_unregister)
        debug("loaded %s", info)
        return info

    def unregister(self, name: str) -> None:
        """Calls `cleanup` of the plugin and unregisters its ops. Existing tensors and graphs stay valid.

        If `cleanup` raises, a warning reports the error, and the plugin is removed nevertheless.
        """
        with LOCK:
            entry = self._entry(name)
            del self._entries[name]
            failure = None
            try:
                entry.plugin.cleanup(self)
            except Exception as error:
                failure = error
            finally:
                reason = f"came with plugin '{name}', which was unloaded; load the plugin again to use it"
                _unregister_ops(entry.ops, reason)
                entry.after_unregister()
        debug("unloaded %s", entry.info)
        if failure is not None:
            report(f"the cleanup of plugin '{name}' failed; the plugin is unloaded nevertheless: {failure!r}", failure)

    def _entry(self, name: str) -> _Entry:
        if not isinstance(name, str):
            raise TypeError(f"the name of a plugin must be a str, got {type(name).__name__}")
        if name not in self._entries:
            import difflib

            near = difflib.get_close_matches(name, self._entries, 1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise ValueError(f"there is no plugin '{name}'{hint}")
        return self._entries[name]

    def list_plugins(self) -> list[PluginInfo]:
        """Returns the metadata of all plugins, in order of registration."""
        with LOCK:
            return [entry.info for entry in self._entries.values()]

    def get_plugin(self, name: str) -> CustomPlugin:
        """Returns the plugin of this name."""
        with LOCK:
            return self._entry(name).plugin

    def get_plugin_info(self, name: str) -> PluginInfo:
        """Returns the metadata of the plugin of this name."""
        with LOCK:
            return self._entry(name).info

    def is_registered(self, name: str) -> bool:
        """Returns whether a plugin of this name is registered."""
        return name in self._entries

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[PluginInfo]:
        return iter(self.list_plugins())

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"PluginRegistry({', '.join(f'{info.name} v{info.version}' for info in self)})"


def _op(plugin: str, given: Any) -> CustomOp:
    """Returns the op for an item of `custom_operations`, which is a `CustomOp` or an op function."""
    op = given if isinstance(given, CustomOp) else CustomOp.of(given)
    if op is None:
        what = getattr(given, "__name__", None) or type(given).__name__
        raise TypeError(
            f"plugin '{plugin}': custom_operations must return a list of results of CustomOpBuilder.build() or "
            f"@mt.custom_op, got an item {what}"
        )
    return op


def _register(plugin: str, ops: list[CustomOp], owner: str | None = None) -> None:
    """Registers those ops that are not registered yet, atomically."""
    try:
        _register_ops(ops, owner)
    except ValueError as error:
        raise ValueError(f"plugin '{plugin}': {error}") from None
