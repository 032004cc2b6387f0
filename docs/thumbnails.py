"""Draw the thumbnails of the gallery: ``python docs/thumbnails.py [NAME…]``, by default those of all notebooks.

Each notebook that has a cell with the tag "thumbnail" is executed, and the picture of this cell is saved.
"""

import base64
import io
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from PIL import Image

DOCS = Path(__file__).parent
NOTEBOOKS = DOCS.parent / "notebooks"
SIZE = (400, 250)
# Pictures are drawn small, so that their texts can be read in a thumbnail.
SETTINGS = "import matplotlib\nmatplotlib.rcParams['figure.figsize'] = (4.8, 3.0)"


def is_drawn(cell: nbformat.NotebookNode) -> bool:
    """Return whether the picture of a cell is a thumbnail."""
    return "thumbnail" in cell.metadata.get("tags", [])


def picture(notebook: nbformat.NotebookNode) -> Image.Image:
    """Execute a notebook, and return the picture of its tagged cell."""
    notebook.cells.insert(0, nbformat.v4.new_code_cell(SETTINGS))
    NotebookClient(notebook, resources={"metadata": {"path": NOTEBOOKS}}).execute()
    [cell] = filter(is_drawn, notebook.cells)
    [data] = [each.data["image/png"] for each in cell.outputs if "image/png" in each.get("data", {})]
    return Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")


def thumbnail(drawn: Image.Image) -> Image.Image:
    """Return a picture in the size of thumbnails, in the middle of a white rectangle, with at most 256 colours."""
    drawn.thumbnail(SIZE, Image.Resampling.LANCZOS)
    small = Image.new("RGB", SIZE, "white")
    small.paste(drawn, ((SIZE[0] - drawn.width) // 2, (SIZE[1] - drawn.height) // 2))
    return small.quantize(256, dither=Image.Dither.NONE)


if __name__ == "__main__":
    names = sys.argv[1:] or [path.stem for path in sorted(NOTEBOOKS.glob("*.ipynb"))]
    for name in names:
        notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
        if any(map(is_drawn, notebook.cells)):
            thumbnail(picture(notebook)).save(DOCS / "_static" / "thumbnails" / f"{name}.png", optimize=True)
