"""Cases that weir does not pass, each with the reason why it stands."""

EXCEPTIONS = {}
