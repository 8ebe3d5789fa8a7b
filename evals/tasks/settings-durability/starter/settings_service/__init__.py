"""The settings of an application, kept in one file; see `settings_service.api`."""
