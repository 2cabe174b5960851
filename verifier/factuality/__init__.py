"""Factuality receipts: answers become claims, claims are checked against retrieved evidence."""

from verifier.factuality.check import check_factuality
from verifier.factuality.corroboration import Corroboration, corroborate, sentence_claims
from verifier.factuality.receipts import ClaimVerdict, FactualityReceipt

__all__ = [
    "ClaimVerdict",
    "Corroboration",
    "FactualityReceipt",
    "check_factuality",
    "corroborate",
    "sentence_claims",
]
