"""durable-kv: a key-value service that must still know what it acknowledged before it died."""
