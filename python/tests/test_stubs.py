"""The stub of the extension module describes its content."""

import ast
import inspect
from pathlib import Path

import pytest

import plimsoll
from plimsoll import _plimsoll

STUB = ast.parse((Path(plimsoll.__file__).parent / "_plimsoll.pyi").read_text())


def parameters(function):
    return [argument.arg for argument in function.args.posonlyargs + function.args.args]


def test_the_stub_has_the_names_of_the_module():
    stated = {node.name: node for node in STUB.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    there = {name for name in dir(_plimsoll) if not name.startswith("__")}
    assert set(stated) == there
    for name, node in stated.items():
        if isinstance(node, ast.FunctionDef):
            assert parameters(node) == list(inspect.signature(getattr(_plimsoll, name)).parameters), name


@pytest.mark.parametrize("of", [_plimsoll.Table, _plimsoll.Simulations])
def test_the_stub_has_the_members_of_the_classes(of):
    [node] = [node for node in STUB.body if isinstance(node, ast.ClassDef) and node.name == of.__name__]
    stated = {node.name: node for node in node.body if isinstance(node, ast.FunctionDef)}
    there = {name for name, _ in inspect.getmembers(of) if name in vars(of)}
    extra = {"__doc__", "__module__", "__new__", "__init__", "__repr__", "__getitem__"}
    assert set(stated) - {"__init__", "__repr__"} == there - extra
    assert parameters(stated["__init__"])[1:] == list(inspect.signature(of).parameters)
    for name, function in stated.items():
        if function.decorator_list:
            assert ast.unparse(function.decorator_list[0]) == "property" and inspect.isdatadescriptor(getattr(of, name)), name
        elif not name.startswith("__"):
            assert parameters(function)[1:] == list(inspect.signature(getattr(of, name)).parameters)[1:], name


def test_the_public_names_are_there_and_described():
    for name in plimsoll.__all__:
        assert inspect.getdoc(getattr(plimsoll, name)), name
    for name in ["run", "replay", "solve", "check", "read", "study"]:
        signature = inspect.signature(getattr(plimsoll, name))
        assert signature.return_annotation is not inspect.Signature.empty
        assert all(each.annotation is not inspect.Parameter.empty for each in signature.parameters.values()), name
