"""holdfast: a conformance kit for systems that promise at most once and never lost.

In the repository the packages stand at the top level, and this folder links to them. Everything is imported as
`holdfast.<package>`, so that an installation owns one name in site-packages.
"""

# Read by the build as the distribution's version.
__version__ = "0.1.0"
