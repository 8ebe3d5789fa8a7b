"""Plan, layout on disk, one trial, one control: everything that is produced once and kept."""
