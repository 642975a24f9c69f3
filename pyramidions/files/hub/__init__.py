"""Models on the Hugging Face hub: their names, downloads and uploads."""

from pyramidions.files.hub.download import Fetched, fetch
from pyramidions.files.hub.names import HubName, hub_name, parsed
from pyramidions.files.hub.upload import upload

__all__ = ["Fetched", "HubName", "fetch", "hub_name", "parsed", "upload"]
