"""The packs that ship: seeded cases, an oracle on the host, references and declared faults."""
