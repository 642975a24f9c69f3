"""Parses XML that nothing is known of: no entity is expanded, and nothing is fetched."""

from typing import IO

from lxml import etree

from pyramidions.base.errors import UserError


def xml_tree(file: IO[bytes], name: str, *, keeps_namespaces: bool = False) -> etree._Element:
    """Return the root of a file, without comments and processing instructions.

    Elements stand at most 256 deep inside one another. A DTD outside of the file is not read.

    Args:
        file: XML in any encoding that it declares.
        name: what an error calls it.
        keeps_namespaces: whether names keep their namespaces.

    Raises:
        UserError: it is no XML, or declares entities, which may be of any size.
    """
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True
    )
    try:
        tree = etree.parse(file, parser)
    except etree.XMLSyntaxError as error:
        raise UserError(f"{name} must be XML, but is not ({error.msg}).") from None
    declared = tree.docinfo.internalDTD
    if declared is not None and any(declared.iterentities()):
        raise UserError(f"{name} must declare no entities, which may be of any size.")
    for element in [] if keeps_namespaces else tree.iter(etree.Element):
        element.tag = etree.QName(element).localname
    return tree.getroot()
