"""Copies of a task on the host, in processes of their own behind the inference service."""
