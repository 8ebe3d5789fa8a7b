"""What other programs wrote, as measurements and as tasks."""
