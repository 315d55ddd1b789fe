"""Pictures of machines: what hangs on what, and which way the data goes."""

from topo.views.diagram.picture import Picture
from topo.views.diagram.sheet import draw
from topo.views.diagram.themes import THEMES, Theme

__all__ = ["THEMES", "Picture", "Theme", "draw"]
