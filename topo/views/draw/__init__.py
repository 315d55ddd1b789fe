"""Pictures of machines: what hangs on what, and which way the data goes."""

from topo.views.draw.picture import Picture
from topo.views.draw.sheet import draw
from topo.views.draw.themes import THEMES, Theme

__all__ = ["THEMES", "Picture", "Theme", "draw"]
