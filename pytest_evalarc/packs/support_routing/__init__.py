"""The pack support-routing: tickets worked through tools that fail, judged by how they end."""
