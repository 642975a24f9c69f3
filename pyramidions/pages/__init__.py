"""HTML pages of one file each, readable in light and dark and closed to the network; see `pyramidions.pages.page`."""
