"""Models on the Hugging Face hub: their names, downloads and uploads."""

from pyramidions.hub.download import Fetched, fetch
from pyramidions.hub.names import HubName, hub_name, parsed
from pyramidions.hub.upload import upload

__all__ = ["Fetched", "HubName", "fetch", "hub_name", "parsed", "upload"]
