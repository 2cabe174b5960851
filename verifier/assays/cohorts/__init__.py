"""The data sets that an assay can be registered on: one file a form, each yields ``verifier.records.Claim``."""
