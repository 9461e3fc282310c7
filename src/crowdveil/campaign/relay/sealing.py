"""Encryption of reports to the curator's key, by HPKE (RFC 9180) of the package `cryptography`.

The relay passes sealed reports on and cannot open them. `campaign.report` names suite, info and layout.
"""

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from crowdveil.campaign.rules.document import Campaign
from crowdveil.campaign.rules.report import body_parts, relay_of
from crowdveil.errors import CampaignError, SettingsError

PrivateKey = ec.EllipticCurvePrivateKey
CURVE = ec.SECP256R1()
SUITE = Suite(KEM.P256, KDF.HKDF_SHA256, AEAD.AES_128_GCM)


def new_key() -> PrivateKey:
    """Return a new private key of the curator."""
    return ec.generate_private_key(CURVE)


def private_key_pem(key: PrivateKey) -> bytes:
    """Return a private key in PEM format (PKCS 8), not encrypted."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def read_key(text: bytes) -> PrivateKey:
    """Return the private key of a PEM text.

    Raises:
        SettingsError: another format or curve.
    """
    try:
        key = load_pem_private_key(text, password=None)
    except (ValueError, TypeError) as error:
        raise SettingsError(
            "the curator's key must be a private key in PEM format",
            value="(not shown)",
            hint="Give the key that `crowdveil campaign new` wrote.",
        ) from error
    if not (isinstance(key, PrivateKey) and isinstance(key.curve, ec.SECP256R1)):
        raise SettingsError("the curator's key must be of the curve P-256", value="(not shown)")
    return key


def uncompressed_public_key_hex(key: PrivateKey) -> str:
    """Return the public key of a private key, as an uncompressed point in hexadecimal."""
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint).hex()


def seal_body(campaign: Campaign, body: bytes) -> bytes:
    """Return the body of a report, sealed as a whole or cell by cell, in the order of the tasks.

    Raises:
        CampaignError: relay, if the campaign names none or its key is no point of the curve.
    """
    try:
        point = bytes.fromhex(relay_of(campaign).public_key)
        key = ec.EllipticCurvePublicKey.from_encoded_point(CURVE, point)
    except ValueError as error:
        raise CampaignError("relay", "the curator's public key is no point of the curve P-256.") from error
    return b"".join(SUITE.encrypt(text, key, info) for info, text in body_parts(campaign, body))


def decrypt_part(key: PrivateKey, info: bytes, sealed: bytes) -> bytes:
    """Return the text of a sealed part.

    Raises:
        CampaignError: sealed, if it was made for another key, campaign or task, or was changed.
    """
    try:
        return SUITE.decrypt(sealed, key, info)
    except (InvalidTag, ValueError) as error:
        raise CampaignError("sealed", "a sealed report cannot be opened with this key.") from error
