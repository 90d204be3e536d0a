"""The cases, one file an area. Importing this fills case.CASES."""
from . import freshness  # noqa: F401
from . import storing  # noqa: F401
from . import request  # noqa: F401
from . import vary  # noqa: F401
from . import invalidation  # noqa: F401
from . import validation  # noqa: F401
from . import stale  # noqa: F401
from . import ranges  # noqa: F401
from . import fields  # noqa: F401
from . import status  # noqa: F401
