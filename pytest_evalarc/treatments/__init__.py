"""What `with` means: a treatment put in place, and expectations decided from evidence."""
