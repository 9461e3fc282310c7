"""Methods as their papers print them, each beside its exact guarantee; loaded on first use."""

from typing import TYPE_CHECKING

from crowdveil.registry import class_of_package

if TYPE_CHECKING:
    from crowdveil.published.matrix_factorization import MatrixFactorizationPublished as MatrixFactorizationPublished
    from crowdveil.published.private_dawid_skene import PrivateDawidSkene as PrivateDawidSkene
    from crowdveil.published.sun_two_layer import SunTwoLayer as SunTwoLayer
else:

    def __getattr__(name: str) -> object:
        """Import a class when it is first used (PEP 562)."""
        return class_of_package("crowdveil.published", name)
