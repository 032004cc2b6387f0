"""A store in this process's memory that has locations, as if a URL of a new scheme opened it."""

from belated.store import memory

_LOCATIONS = {}


class MemoryStore(memory.MemoryStore):
    """Stores with the same location have the same content, as with a file."""

    opens_by_url = True

    def __init__(self, location):
        super().__init__()
        self.url = f"memory://{location}"

    @classmethod
    def from_location(cls, location):
        return _LOCATIONS.setdefault(location, cls(location))
