"""Recording of datasets: demonstrations, and replays played back."""
