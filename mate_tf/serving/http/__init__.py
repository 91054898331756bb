"""The HTTP server, in KServe's protocol."""
