"""The graph of a program for other tools: NetworkX, GraphML, and pictures by Graphviz."""

import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from typing import Any, Dict, Iterable, Mapping, Union

from ._errors import FailedPrecondition, InvalidArgument

Record = Mapping[str, Any]  # as Program.graph() gives it

# Characters that XML 1.0 cannot hold.
_NO_TEXT = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_OF_NODES = ("kind", "module_path", "depth", "call", "operator", "overload", "in_place", "view", "random")
_OF_EDGES = ("kind", "value", "version", "argument")
_MADE = ("tensors", "arguments", "line")
_TYPES = ((bool, "boolean"), (int, "long"), (float, "double"), (str, "string"))
_NAMESPACE = "http://graphml.graphdrawing.org/xmlns"


def to_networkx(graph: Record) -> Any:
    """A ``networkx.MultiDiGraph``."""
    try:
        import networkx
    except ImportError as error:
        raise ImportError("to_networkx() needs the package networkx: pip install networkx") from error
    made = networkx.MultiDiGraph(modules=graph["modules"], numbers=graph["numbers"])
    names = [node["name"] for node in graph["nodes"]]
    for node in graph["nodes"]:
        made.add_node(node["name"], **{key: value for key, value in node.items() if key not in ("id", "name")})
    for edge in graph["edges"]:
        own = {key: value for key, value in edge.items() if key not in ("from", "to")}
        made.add_edge(names[edge["from"]], names[edge["to"]], **own)
    return made


def graphml(graph: Record) -> str:
    """The graph as GraphML, in which attributes are numbers and text."""
    taken = [head["name"] for head in graph["numbers"] if head["name"] in (*_OF_NODES, *_MADE)]
    if taken:
        raise InvalidArgument("%s is an attribute of nodes; give these numbers another name" % taken[0])
    nodes = [(node["name"], _flat(node, graph)) for node in graph["nodes"]]
    edges = [(edge["from"], edge["to"], _plain(edge, _OF_EDGES)) for edge in graph["edges"]]
    root = ElementTree.Element("graphml", xmlns=_NAMESPACE)
    keys: Dict[Any, str] = {}
    for kind, all_data in (("node", [data for _, data in nodes]), ("edge", [data for *_, data in edges])):
        for data in all_data:
            for name, value in data.items():
                if (kind, name) not in keys:
                    key = keys[kind, name] = "d%d" % len(keys)
                    attributes = {"id": key, "for": kind, "attr.name": _text(name), "attr.type": _type_of(value)}
                    ElementTree.SubElement(root, "key", attributes)
    made = ElementTree.SubElement(root, "graph", edgedefault="directed")
    for name, data in nodes:
        _add_data(ElementTree.SubElement(made, "node", id=_text(name)), data, "node", keys)
    for number, (source, target, data) in enumerate(edges):
        ends = {"id": str(number), "source": _text(nodes[source][0]), "target": _text(nodes[target][0])}
        _add_data(ElementTree.SubElement(made, "edge", ends), data, "edge", keys)
    return "<?xml version='1.0' encoding='utf-8'?>\n" + ElementTree.tostring(root, encoding="unicode") + "\n"


def draw(dot: str, path: Union[str, "os.PathLike[str]"]) -> None:
    """Writes a picture of a graph in the language of Graphviz, in the format that the file's name ends in."""
    program = shutil.which("dot")
    if program is None:
        raise FailedPrecondition(
            "a picture needs Graphviz, whose program dot is not installed (apt install graphviz, or brew install "
            "graphviz); dot() gives the text to draw elsewhere, and html() a page that needs nothing"
        )
    kind = os.path.splitext(os.fspath(path))[1][1:]
    if not kind:
        raise InvalidArgument("%s has no ending that says what to write, such as .svg or .png" % os.fspath(path))
    command = [program, "-T" + kind, "-o", os.path.abspath(os.fspath(path))]
    done = subprocess.run(command, input=dot.encode("utf-8"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise InvalidArgument("Graphviz did not write %s: %s" % (os.fspath(path), said or "exit %d" % done.returncode))


def _flat(node: Record, graph: Record) -> Dict[str, Any]:
    """The attributes of a node as numbers and text."""
    flat = _plain(node, _OF_NODES)
    tensors = node["tensors"]
    flat["tensors"] = "; ".join("%s%s" % (tensor["dtype"], tensor["shape"]) for tensor in tensors)
    arguments = [one for one in node.get("arguments", ()) if "value" in one and not one.get("default")]
    if arguments:
        flat["arguments"] = ", ".join("%s=%s" % (one["name"], one["value"]) for one in arguments)
    frames = node.get("frames", ())
    if frames:
        flat["line"] = "%s:%s" % (frames[-1]["file"], frames[-1]["line"])
    for head, value in zip(graph["numbers"], node.get("numbers", ())):
        if value is not None:
            flat[head["name"]] = float(value)
    return flat


def _plain(record: Record, names: Iterable[str]) -> Dict[str, Any]:
    return {name: record[name] for name in names if record.get(name) is not None}


def _add_data(element: Any, data: Record, kind: str, keys: Mapping[Any, str]) -> None:
    for name, value in data.items():
        text = str(value).lower() if isinstance(value, bool) else _text(str(value))
        ElementTree.SubElement(element, "data", key=keys[kind, name]).text = text


def _type_of(value: Any) -> str:
    return next(name for kind, name in _TYPES if isinstance(value, kind))


def _text(text: str) -> str:
    return _NO_TEXT.sub(lambda found: "\\u%04x" % ord(found.group()), text)
