"""The errors that cross module borders; each message is one sentence a user can act on."""


class VerificationError(RuntimeError):
    """A model or scorer failed, or returned something that is not a probability; never a verdict."""


class MissingScore(VerificationError):
    """A recorded scorer was asked for a pair that was not recorded."""


class PairTooLong(VerificationError):
    """A pair does not fit the model and the configuration forbids windows and truncation."""


class ConfigurationError(ValueError):
    """The configuration or the input cannot be used as given (exit status 2)."""


class LimitError(ConfigurationError):
    """The job did its work, but a limit or gate that the configuration sets has failed (exit status 1)."""


class InputError(ValueError):
    """One claim cannot be verified as given.

    Attributes:
        code: a stable reject code, for instance ``repeated_reference``.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
