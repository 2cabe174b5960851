"""The search for minimal evidence groups: a pure plan over a batch of claims, no model in sight."""
