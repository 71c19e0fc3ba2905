"""The systems that AlphaStar is built on, or is compared with: one file an idea.

Each is a `System` of pure functions on the parts of the other rooms: losses, update, tables.
"""
