"""The handles for asyncio: the methods and values of the synchronous ones, awaited.

Each unit of work is one hop off the event loop: a write joins the group commit by its asyncio
path, a read runs in the backend's threads. A cancelled call whose unit had begun waits for the
real outcome first, so that a caller never takes a message for lost that is stored.
"""
