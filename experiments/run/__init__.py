"""What launch files share: settings, processes, wiring, progress display."""
