"""A store in the memory of this process, with an additional scheme of URLs."""

from belated.store import memory

_LOCATIONS = {}


class MemoryStore(memory.MemoryStore):
    """A store in memory. Stores with the same location share their content, as if in the same file."""

    opens_by_url = True

    def __init__(self, location):
        super().__init__()
        self.url = f"memory://{location}"

    @classmethod
    def from_location(cls, location):
        return _LOCATIONS.setdefault(location, cls(location))
