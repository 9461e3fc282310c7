"""Registry: every entry loads its class, and every list of names comes from it."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

import crowdveil
from crowdveil.em.engines import ENGINES
from crowdveil.estimators import ESTIMATORS
from crowdveil.mechanisms import MECHANISMS
from crowdveil.registry import (
    DESIGNED_MECHANISMS,
    ENGINE_ENTRIES,
    ESTIMATOR_ENTRIES,
    MECHANISM_ENTRIES,
    PACKAGES,
    PLAN_METHODS,
    SUMS_ESTIMATOR,
    USUAL_ESTIMATORS,
    USUAL_MECHANISMS,
    Entry,
    mechanisms_with,
)

ENTRIES = (*ESTIMATOR_ENTRIES.values(), SUMS_ESTIMATOR, *MECHANISM_ENTRIES.values(), *ENGINE_ENTRIES.values())


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_an_entry_loads_the_class_of_its_name(entry: Entry) -> None:
    """The class of an entry exists in its module and carries the name of the entry."""
    assert (entry.name, entry.class_name) == (entry.import_class().name, entry.import_class().__name__)


def test_the_dictionaries_of_classes_follow_the_registry() -> None:
    """Estimators, mechanisms and engines have the names and the order of their entries."""
    assert list(ESTIMATOR_ENTRIES) == list(ESTIMATORS)
    assert list(MECHANISM_ENTRIES) == list(MECHANISMS)
    assert list(ENGINE_ENTRIES) == list(ENGINES)


def test_every_registered_class_is_public() -> None:
    """Each estimator and mechanism is a name of its package; those used most are names of crowdveil itself."""
    found = {entry.name for entries in PACKAGES.values() for entry in entries.values()}
    for package, entries in PACKAGES.items():
        for name, entry in entries.items():
            assert getattr(import_module(package), name) is entry.import_class()
    for usual in (*map(ESTIMATOR_ENTRIES.get, USUAL_ESTIMATORS), *map(MECHANISM_ENTRIES.get, USUAL_MECHANISMS)):
        assert usual is not None
        assert getattr(crowdveil, usual.class_name) is usual.import_class()
    assert found == {*ESTIMATOR_ENTRIES, *MECHANISM_ENTRIES}


@pytest.mark.parametrize("package", PACKAGES)
def test_type_checkers_see_every_class(package: str) -> None:
    """A package imports each of its classes for type checkers, which cannot see what is loaded at first use."""
    text = Path(str(import_module(package).__file__)).read_text("utf-8")
    names = {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.alias)}

    assert set() == PACKAGES[package].keys() - names


def test_mechanisms_are_found_by_their_settings() -> None:
    """A setting names its mechanisms; designed mechanisms and plannable methods are lists of names."""
    assert ("two-layer", "sun-two-layer") == mechanisms_with("low")
    assert () == mechanisms_with("nothing")
    assert ("quantized-response", "designed") == DESIGNED_MECHANISMS
    assert ("dawid-skene", "hierarchical-dawid-skene", "one-coin", "ordinal-dawid-skene", "gaussian") == PLAN_METHODS


def test_an_unknown_class_of_a_package_is_refused() -> None:
    """A name that a package does not hand out raises AttributeError, which names the package."""
    for package in PACKAGES:
        with pytest.raises(AttributeError, match=package):
            getattr(import_module(package), "Unknown")  # noqa: B009
