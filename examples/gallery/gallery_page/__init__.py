"""The page of the gallery, made from the sources and from the registry."""
