"""Hooks of MkDocs, see mkdocs.yml: they add the pages that are made, and keep the site local."""

import pages
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files


def on_files(files: Files, config: MkDocsConfig) -> Files:
  """Adds the pages that are made."""
  for path, content in pages.make_pages().items():
    files.append(File.generated(config, path, content=content))
  return files


def on_post_page(output: str, **_: object) -> str:
  """Raises PluginError if a page would load anything from another server."""
  found = pages.loaded_from_elsewhere(output)
  if found:
    raise PluginError(f"a page must load nothing from another server, found {found}")
  return output
