"""What a user got wrong, in one sentence."""


class UserError(ValueError):
    """Wrong input from outside: its message is one sentence that names the argument, the rule and the value.

    The command line shows it without a traceback; a library caller may catch it as a `ValueError`.
    """
