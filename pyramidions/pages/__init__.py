"""HTML pages of one file each: their frame, which makes them readable in light and dark and closed to the network."""
